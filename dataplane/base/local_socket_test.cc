// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/local_socket.h"

#include <grp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <vector>

namespace sluice::base {
namespace {

namespace fs = std::filesystem;

class LocalSocket : public ::testing::Test {
 protected:
  void SetUp() override {
    std::array<char, 40> text{"/tmp/sluice-local-socket-XXXXXX"};
    folder_ = ::mkdtemp(text.data());
    std::ofstream(folder_ / "s").close();
  }
  void TearDown() override { fs::remove_all(folder_); }
  struct stat of(const fs::path& path) const {
    struct stat info {};
    EXPECT_EQ(::stat(path.c_str(), &info), 0);
    return info;
  }
  mode_t mode(const fs::path& path) const { return of(path).st_mode & 07777; }

  fs::path folder_;
};

// One that this process may give a file to: as root another than its own.
const struct group* usable_group() {
  if (::geteuid() == 0) return ::getgrnam("adm");
  return ::getgrgid(::getegid());
}

TEST_F(LocalSocket, WithoutAGroupItIsItsOwnersAlone) {
  fs::permissions(folder_ / "s", fs::perms::all);
  ASSERT_TRUE(share_socket(folder_ / "s", "", "[control] group"));
  EXPECT_EQ(mode(folder_ / "s"), 0600U);
  EXPECT_EQ(mode(folder_), 0700U);
}

TEST_F(LocalSocket, AGroupMayOpenItAndPassItsDirectory) {
  const struct group* const group = usable_group();
  if (group == nullptr) GTEST_SKIP() << "this process's group has no name";
  const auto shared = share_socket(folder_ / "s", group->gr_name, "[control] group");
  ASSERT_TRUE(shared) << shared.error().message;
  EXPECT_EQ(mode(folder_ / "s"), 0660U);
  EXPECT_EQ(of(folder_ / "s").st_gid, group->gr_gid);
  EXPECT_EQ(mode(folder_), 0711U);
}

TEST_F(LocalSocket, AGroupThatIsNotThereIsNamedWithItsKey) {
  const auto shared = share_socket(folder_ / "s", "no-such-group", "[dataplane] group");
  ASSERT_FALSE(shared);
  EXPECT_EQ(shared.error().code, ErrorCode::kConfiguration);
  EXPECT_EQ(shared.error().message,
            "[dataplane] group = \"no-such-group\": there is no such group; make it with: groupadd --system "
            "no-such-group");
  EXPECT_EQ(mode(folder_), 0700U);
}

TEST_F(LocalSocket, ASocketThatIsNotThereIsAnError) {
  EXPECT_FALSE(share_socket(folder_ / "t", "", "[control] group"));
  const struct group* const group = usable_group();
  if (group == nullptr) GTEST_SKIP() << "this process's group has no name";
  const auto shared = share_socket(folder_ / "t", group->gr_name, "[control] group");
  ASSERT_FALSE(shared);
  EXPECT_NE(shared.error().message.find(folder_ / "t"), std::string::npos) << shared.error().message;
}

}  // namespace
}  // namespace sluice::base
