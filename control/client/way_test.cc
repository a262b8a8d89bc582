// SPDX-License-Identifier: Apache-2.0
#include "control/client/way.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <vector>

namespace sluice::api {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kStranger = 65534;

// A directory that has the shape of a node's, which anybody may pass.
class WayTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = "/tmp/sluice-way-test-XXXXXX";
    node_.directory = ::mkdtemp(pattern.data());
    fs::create_directory(node_.run_dir());
    fs::permissions(node_.directory, fs::perms(0755));
    fs::permissions(node_.run_dir(), fs::perms(0755));
  }
  void TearDown() override { fs::remove_all(node_.directory); }

  void listen_at(const fs::path& socket, int mode) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, socket.c_str(), sizeof(address.sun_path) - 1);
    UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(::listen(fd.get(), 1), 0);
    fs::permissions(socket, fs::perms(mode));
    listening_.push_back(std::move(fd));
  }
  // In a process of a user to whom nothing here belongs.
  template <typename Question>
  void as_stranger(const Question& question) const {
    EXPECT_EXIT(std::_Exit(::setuid(kStranger) == 0 && question() ? 0 : 1), ::testing::ExitedWithCode(0), "");
  }

  config::Node node_;
  std::vector<UniqueFd> listening_;
};

TEST_F(WayTest, AnOperatorGetsTheFirstSocket) {
  for (const fs::path& socket : sockets_of(node_)) listen_at(socket, 0600);
  EXPECT_TRUE(connect_to(node_.directory));
  EXPECT_EQ(socket_for_this_user(node_.directory), node_.control_socket());
}

TEST_F(WayTest, WhoMayNotOpenTheFirstSocketGetsTheNext) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  listen_at(node_.control_socket(), 0600);
  listen_at(node_.users_socket(), 0666);
  listen_at(node_.readers_socket(), 0666);
  as_stranger([this] { return static_cast<bool>(connect_to(node_.directory)); });
  as_stranger([this] { return socket_for_this_user(node_.directory) == node_.users_socket(); });
}

TEST_F(WayTest, WhoMayOpenNoneIsToldOfTheOperators) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become somebody else";
  for (const fs::path& socket : sockets_of(node_)) listen_at(socket, 0600);
  as_stranger([this] {
    const auto refused = connect_to(node_.directory);
    return !refused && refused.error().code == ErrorCode::kConfiguration &&
           refused.error().message.find("no permission for " + node_.control_socket().string()) == 0;
  });
  as_stranger([this] { return socket_for_this_user(node_.directory) == node_.control_socket(); });
}

TEST_F(WayTest, WhereNobodyListensTheDaemonIsToBeStarted) {
  const auto missing = connect_to(node_.directory);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::kDaemonNotRunning);
  EXPECT_NE(missing.error().message.find("start it with 'sluice-control --node "), std::string::npos);
  listen_at(node_.control_socket(), 0600);
  listening_.clear();  // as after a crash
  EXPECT_EQ(connect_to(node_.directory).error().message, missing.error().message);
}

TEST_F(WayTest, APathThatIsTooLongIsAnErrorOfTheConfiguration) {
  const auto refused = connect_to(node_.directory / std::string(120, 'x'));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kConfiguration);
  EXPECT_NE(refused.error().message.find("use a shorter node directory"), std::string::npos);
}

}  // namespace
}  // namespace sluice::api
