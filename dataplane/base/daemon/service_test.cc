// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/daemon/service.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace sluice::daemon {
namespace {

using std::chrono::nanoseconds;

// The service manager: a socket of this test's own. `name` as in $NOTIFY_SOCKET.
class Manager {
 public:
  explicit Manager(const std::string& name) : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    const bool abstract = name[0] == '@';
    if (abstract) address.sun_path[0] = '\0';
    const size_t bytes = offsetof(sockaddr_un, sun_path) + name.size() + (abstract ? 0 : 1);
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), static_cast<socklen_t>(bytes)), 0);
    ::setenv("NOTIFY_SOCKET", name.c_str(), 1);
  }
  ~Manager() {
    for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) ::unsetenv(name);
  }
  // The next thing that it was told; empty: nothing.
  std::string told() const {
    std::array<char, 4096> text{};
    const ssize_t bytes = ::recv(socket_.get(), text.data(), text.size(), MSG_DONTWAIT);
    return bytes < 0 ? "" : std::string(text.data(), static_cast<size_t>(bytes));
  }

 private:
  UniqueFd socket_;
};

std::string path() { return "/tmp/sluice-service-test-" + std::to_string(::getpid()); }
std::string abstract_name() { return "@" + path(); }

TEST(Service, TellsWhatItDoesByPathAndByAbstractName) {
  for (const std::string& name : {path(), abstract_name()}) {
    const Manager manager(name);
    Service service = Service::from_environment();
    EXPECT_TRUE(service.is_told());
    EXPECT_EQ(std::getenv("NOTIFY_SOCKET"), nullptr);
    EXPECT_EQ(manager.told(), "");
    service.ready("serves peers");
    EXPECT_EQ(manager.told(), "READY=1\nSTATUS=serves peers");
    service.status("serves peers");
    EXPECT_EQ(manager.told(), "") << "that was said already";
    service.status("one\nREADY=0");
    EXPECT_EQ(manager.told(), "STATUS=one?READY=0") << "a line stays one";
    service.stopping();
    EXPECT_EQ(manager.told(), "STOPPING=1\nSTATUS=ending");
    std::filesystem::remove(path());
  }
}

TEST(Service, IsAliveTwiceInTheTimeOfItsWatchdog) {
  const Manager manager(abstract_name());
  ::setenv("WATCHDOG_USEC", "20", 1);
  ::setenv("WATCHDOG_PID", std::to_string(::getpid()).c_str(), 1);
  Service service = Service::from_environment();
  EXPECT_EQ(service.alive_interval(), nanoseconds(10'000));
  service.alive(5);
  EXPECT_EQ(manager.told(), "WATCHDOG=1");
  service.alive(10'004);
  EXPECT_EQ(manager.told(), "");
  service.alive(10'005);
  EXPECT_EQ(manager.told(), "WATCHDOG=1");
}

TEST(Service, IsNotWatchedIfThatIsMeantForAnotherProcessOrIsNoNumber) {
  const Manager manager(abstract_name());
  const std::string name = std::getenv("NOTIFY_SOCKET");
  for (const auto& [us, pid] : {std::pair{"20", "1"}, {"", ""}, {"soon", ""}, {"20", "x"}}) {
    ::setenv("NOTIFY_SOCKET", name.c_str(), 1);
    ::setenv("WATCHDOG_USEC", us, 1);
    ::setenv("WATCHDOG_PID", pid, 1);
    Service service = Service::from_environment();
    EXPECT_EQ(service.alive_interval(), nanoseconds(0)) << us << " " << pid;
    service.alive(1);
    EXPECT_EQ(manager.told(), "");
  }
}

TEST(Service, WithoutAManagerNothingIsSaid) {
  ::unsetenv("NOTIFY_SOCKET");
  ::setenv("WATCHDOG_USEC", "20", 1);
  Service none = Service::from_environment();
  EXPECT_FALSE(none.is_told());
  EXPECT_EQ(none.alive_interval(), nanoseconds(0));
  none.ready("serves");
  none.alive(1);
  for (const std::string& name :
       {std::string("relative"), std::string("@"), path() + "-nobody", std::string(200, '/')}) {
    ::setenv("NOTIFY_SOCKET", name.c_str(), 1);
    EXPECT_FALSE(Service::from_environment().is_told()) << name;
  }
}

// A manager that reads nothing: its queue is soon full, and the loop goes on.
TEST(Service, WhatIsNotTakenIsSaidAgainWithTheNextTurn) {
  const Manager manager(abstract_name());
  ::setenv("WATCHDOG_USEC", "2", 1);
  Service service = Service::from_environment();
  uint64_t turns = 0;
  while (turns < 10'000'000) service.alive(turns += 1000);
  size_t told = 0;
  while (manager.told() == "WATCHDOG=1") ++told;
  EXPECT_GT(told, 0U);
  EXPECT_LT(told, 10'000U);
  service.alive(turns);  // due since long
  EXPECT_EQ(manager.told(), "WATCHDOG=1");
}

}  // namespace
}  // namespace sluice::daemon
