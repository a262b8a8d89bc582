// Each deed is tried in a child of its own, under the very profile of a daemon.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/sandbox/sandbox.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <linux/keyctl.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include "dataplane/base/sandbox/profiles.h"
#include "dataplane/base/unique_fd.h"

namespace sluice::sandbox {
namespace {

namespace fs = std::filesystem;

using Deed = std::function<long()>;

constexpr int kNoSandbox = 200;
constexpr int kKilled = -SIGSYS;

// 0: it went well; an errno; or minus the signal that ended the child.
int in_child(const Profile& profile, const Deed& deed, bool wanted = true) {
  const pid_t child = fork();
  if (child == 0) {
    const auto state = apply(profile, wanted);
    if (!state || (wanted && state->off != Off::kNot)) _exit(kNoSandbox);
    errno = 0;
    _exit(deed() < 0 ? errno : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

long open_and_close(const fs::path& path, int flags = O_RDONLY) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0600);
  return fd < 0 ? -1 : ::close(fd);
}

int tcp(uint16_t port, int (*use)(int, const sockaddr*, socklen_t)) {
  const UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return fd ? use(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) : -1;
}

long any_socket(int family, int kind) {
  const UniqueFd fd(::socket(family, kind, 0));
  return fd ? 0 : -1;
}

class SandboxTest : public ::testing::Test {
 protected:
  SandboxTest() {
    char name[] = "/tmp/sluice-sandbox-XXXXXX";
    root_ = ::mkdtemp(name);
    for (const char* directory : {"node", "node/run", "state", "rw", "rw/within", "ro", "outside"})
      fs::create_directory(root_ / directory);
    for (const char* file : {"node/key", "node/run/old.sock", "rw/file", "ro/file", "outside/file"})
      std::ofstream(root_ / file) << "text";
  }
  ~SandboxTest() override { fs::remove_all(root_); }
  void SetUp() override {
    if (in_child(
            {.key = "none"}, [] { return 0; }, false) != 0)
      GTEST_FAIL() << "not even privileges go";
    const int filtered = in_child(dataplane(PortKind::kMemif), [] { return 0; });
    if (filtered == kNoSandbox) GTEST_SKIP() << "no sandbox in a build with a sanitizer";
  }

  Profile dataplane(PortKind port) const {
    return dataplane_profile({.port = port, .run_dir = root_ / "node/run"});
  }
  Profile control() const {
    return control_profile({.node = root_ / "node",
                            .run = root_ / "node/run",
                            .state = root_ / "state",
                            .exports = {{root_ / "rw", Access::kChange}, {root_ / "ro", Access::kRead}},
                            .tcp_ports = {0}});
  }
  static bool has_landlock() { return landlock_version() >= 2; }

  fs::path root_;
};

// What neither may do, whatever it was taken over for.
void expect_hostile_deeds_end_it(const Profile& profile) {
  const auto program = [] {
    char* const none[] = {nullptr};
    return ::execve("/bin/true", none, none);
  };
  EXPECT_EQ(in_child(profile, program), kKilled);
  EXPECT_EQ(in_child(profile, [] { return ::ptrace(PTRACE_ATTACH, ::getppid(), 0, 0); }), kKilled);
  EXPECT_EQ(in_child(profile, [] { return ::unshare(CLONE_NEWUSER); }), kKilled);
  EXPECT_EQ(in_child(profile, [] { return ::mount("none", "/mnt", "tmpfs", 0, nullptr); }), kKilled);
  EXPECT_EQ(in_child(profile, [] { return ::syscall(SYS_bpf, 0, nullptr, 0); }), kKilled);
  EXPECT_EQ(in_child(profile, [] { return ::syscall(SYS_init_module, nullptr, 0, ""); }), kKilled);
  EXPECT_EQ(in_child(profile, [] { return ::syscall(SYS_process_vm_readv, ::getppid(), 0, 0, 0, 0, 0); }),
            kKilled);
  EXPECT_EQ(in_child(profile, [] { return ::syscall(SYS_perf_event_open, nullptr, 0, 0, 0, 0); }), kKilled);
}

void expect_other_deeds_fail(const Profile& profile) {
  EXPECT_EQ(in_child(profile, [] { return ::kill(::getppid(), 0); }), EPERM);
  EXPECT_EQ(in_child(profile, [] { return ::fork(); }), EPERM);
  EXPECT_EQ(in_child(profile, [] { return ::syscall(SYS_tgkill, ::getppid(), ::getppid(), 0); }), EPERM);
  EXPECT_EQ(in_child(profile, [] { return ::syscall(SYS_io_uring_setup, 8, nullptr); }), EPERM);
  EXPECT_EQ(in_child(profile, [] { return ::syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, 0); }), EPERM);
  EXPECT_EQ(in_child(profile, [] { return ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); }), EPERM);
  EXPECT_EQ(in_child(profile, [] { return any_socket(AF_PACKET, SOCK_RAW); }), EPERM);
  EXPECT_EQ(in_child(profile, [] { return any_socket(AF_ALG, SOCK_SEQPACKET); }), EPERM);
  EXPECT_EQ(in_child(profile, [] { return ::mknod("/tmp/sluice-no-device", S_IFCHR | 0600, 259); }), EPERM);
  EXPECT_EQ(in_child(profile, [] { return ::setuid(0); }), EPERM);
}

void expect_threads_and_memory(const Profile& profile) {
  const auto deed = [] {
    std::atomic<int> done{0};
    std::thread([&] { done = 1; }).join();
    void* const at = ::mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return done == 1 && at != MAP_FAILED && ::mprotect(at, 4096, PROT_READ) == 0 ? 0 : -1;
  };
  EXPECT_EQ(in_child(profile, deed), 0);
  EXPECT_EQ(in_child(profile,
                     [] {
                       std::abort();
                       return 0;
                     }),
            -SIGABRT)
      << "a failed CHECK ends as ever";
}

TEST_F(SandboxTest, ADataplaneOpensNothingAndRunsNothing) {
  const fs::path file = root_ / "outside/file";
  for (const PortKind port :
       {PortKind::kSockets, PortKind::kMemif, PortKind::kKernel, PortKind::kVhost, PortKind::kCard}) {
    SCOPED_TRACE(static_cast<int>(port));
    const Profile profile = dataplane(port);
    expect_hostile_deeds_end_it(profile);
    expect_other_deeds_fail(profile);
    expect_threads_and_memory(profile);
    const int refused = port == PortKind::kCard && has_landlock() ? EACCES : EPERM;
    EXPECT_EQ(in_child(profile, [&] { return open_and_close(file); }), refused);
    EXPECT_EQ(in_child(profile, [&] { return open_and_close("/proc/self/mem"); }),
              port == PortKind::kCard ? 0 : EPERM);
    EXPECT_EQ(in_child(profile, [&] { return ::syscall(SYS_openat2, AT_FDCWD, file.c_str(), nullptr, 0); }),
              EPERM);
    EXPECT_EQ(in_child(profile, [] { return any_socket(AF_INET, SOCK_STREAM); }), EPERM);
    EXPECT_EQ(in_child(profile, [] { return any_socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC); }), EPERM);
    const auto executable = [] {
      return ::mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED
                 ? -1
                 : 0;
    };
    EXPECT_EQ(in_child(profile, executable), EPERM);
  }
}

TEST_F(SandboxTest, ADataplaneUsesWhatItWasGivenAndItsPortsSockets) {
  const UniqueFd given(::open((root_ / "outside/file").c_str(), O_RDWR | O_CLOEXEC));
  char byte = 0;
  for (const PortKind port : {PortKind::kSockets, PortKind::kMemif, PortKind::kKernel}) {
    EXPECT_EQ(in_child(dataplane(port), [&] { return ::pread(given.get(), &byte, 1, 0); }), 0);
    EXPECT_EQ(in_child(dataplane(port), [&] { return ::pwrite(given.get(), "T", 1, 0); }), 0);
  }
  const auto udp = [] { return any_socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK); };
  const auto local = [] { return any_socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC); };
  EXPECT_EQ(in_child(dataplane(PortKind::kSockets), udp), 0);
  EXPECT_EQ(in_child(dataplane(PortKind::kMemif), udp), EPERM);
  EXPECT_EQ(in_child(dataplane(PortKind::kMemif), local), EPERM) << "a server calls nobody";
  const Profile client =
      dataplane_profile({.port = PortKind::kMemif, .run_dir = root_ / "node/run", .memif_client = true});
  EXPECT_EQ(in_child(client, local), 0);
  EXPECT_EQ(in_child(dataplane(PortKind::kKernel), local), EPERM);
  const auto stream = [] { return any_socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC); };
  EXPECT_EQ(in_child(dataplane(PortKind::kVhost), stream), 0) << "each end calls the other anew";
  EXPECT_EQ(in_child(dataplane(PortKind::kVhost), udp), EPERM);
}

TEST_F(SandboxTest, ADriverThatReadsStatisticsReadsNothingElse) {
  if (!has_landlock()) GTEST_SKIP() << "no Landlock here";
  const Profile profile = dataplane_profile(
      {.port = PortKind::kKernel, .run_dir = root_ / "node/run", .interface_statistics = true});
  EXPECT_EQ(in_child(profile, [] { return open_and_close("/sys/class/net/lo/statistics/rx_missed_errors"); }),
            0);
  EXPECT_EQ(in_child(profile, [&] { return open_and_close(root_ / "outside/file"); }), EACCES);
  EXPECT_EQ(in_child(dataplane(PortKind::kKernel), [] { return open_and_close("/sys/class/net/lo/mtu"); }),
            EPERM);
}

TEST_F(SandboxTest, ADataplaneRemovesItsSocketsAndNoOtherName) {
  const Profile profile = dataplane(PortKind::kSockets);
  const int expected = has_landlock() ? 0 : EPERM;
  EXPECT_EQ(in_child(profile, [&] { return ::unlink((root_ / "node/run/old.sock").c_str()); }), expected);
  EXPECT_NE(in_child(profile, [&] { return ::unlink((root_ / "outside/file").c_str()); }), 0);
  EXPECT_TRUE(fs::exists(root_ / "outside/file"));
}

TEST_F(SandboxTest, AControlSeesWhatItMayDoAndGivesFilesAwayIfItIsRoot) {
  const auto sees = [] {
    __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
    __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {};
    return ::syscall(SYS_capget, &header, sets);
  };
  EXPECT_EQ(in_child(control(), sees), 0);
  if (::geteuid() != 0) return;
  EXPECT_EQ(in_child(control(), [&] { return ::chown((root_ / "rw/file").c_str(), 1, 1); }), 0);
}

TEST_F(SandboxTest, AControlRunsNothing) {
  expect_hostile_deeds_end_it(control());
  expect_other_deeds_fail(control());
  expect_threads_and_memory(control());
}

TEST_F(SandboxTest, AControlComesToItsExportsItsOwnFilesAndTheNameService) {
  const Profile profile = control();
  const auto opens = [&](const fs::path& path, int flags = O_RDONLY) {
    return in_child(profile, [&] { return open_and_close(path, flags); });
  };
  EXPECT_EQ(opens(root_ / "rw/within/new", O_WRONLY | O_CREAT | O_TRUNC), 0);
  const auto moved = [&] {
    return ::rename((root_ / "rw/within/new").c_str(), (root_ / "rw/moved").c_str());
  };
  EXPECT_EQ(in_child(profile, moved), 0) << "to another directory";
  EXPECT_EQ(in_child(profile, [&] { return ::truncate((root_ / "rw/moved").c_str(), 5); }), 0);
  EXPECT_EQ(in_child(profile, [&] { return ::unlink((root_ / "rw/moved").c_str()); }), 0);
  EXPECT_EQ(opens(root_ / "ro/file"), 0);
  EXPECT_EQ(opens(root_ / "node/key"), 0);
  EXPECT_EQ(opens(root_ / "state/journal", O_RDWR | O_CREAT), 0);
  EXPECT_EQ(opens("/etc/hosts"), 0);
  EXPECT_EQ(opens("/dev/urandom"), 0);
  EXPECT_EQ(opens("/dev/null", O_RDWR), 0);
  EXPECT_EQ(opens("/proc/self/stat"), 0);
  EXPECT_EQ(opens("/proc/self/fd", O_RDONLY | O_DIRECTORY), 0);

  if (!has_landlock()) GTEST_SKIP() << "no Landlock in this kernel";
  EXPECT_EQ(opens(root_ / "outside/file"), EACCES);
  EXPECT_EQ(opens(root_ / "outside/new", O_WRONLY | O_CREAT), EACCES);
  EXPECT_EQ(opens(root_, O_RDONLY | O_DIRECTORY), EACCES);
  EXPECT_EQ(opens(root_ / "rw/../outside/file"), EACCES);
  EXPECT_EQ(opens(root_ / "ro/file", O_WRONLY), EACCES);
  EXPECT_EQ(opens(root_ / "ro/new", O_WRONLY | O_CREAT), EACCES);
  EXPECT_EQ(opens(root_ / "node/key", O_WRONLY), EACCES) << "its key is not its own to change";
  EXPECT_EQ(opens("/etc/sluice-sandbox-test", O_WRONLY | O_CREAT), EACCES);
  EXPECT_EQ(opens("/proc/1/environ"), EACCES);
  fs::create_symlink(root_ / "outside/file", root_ / "rw/link");
  EXPECT_EQ(opens(root_ / "rw/link"), EACCES) << "a link in an export leads nowhere else";
}

TEST_F(SandboxTest, UsersAreBecomeAndReachTheExportsAlone) {
  const Profile profile =
      users_profile(root_ / "node/run", {{root_ / "rw", Access::kChange}, {root_ / "ro", Access::kRead}});
  expect_hostile_deeds_end_it(profile);
  EXPECT_EQ(in_child(profile, [] { return ::kill(::getppid(), 0); }), EPERM);
  EXPECT_EQ(in_child(profile, [] { return ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); }), EPERM);
  EXPECT_EQ(in_child(profile, [] { return ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }), 0);
  EXPECT_EQ(in_child(profile, [] { return any_socket(AF_INET, SOCK_STREAM); }), EPERM);
  EXPECT_EQ(in_child(profile, [&] { return open_and_close(root_ / "rw/new", O_RDWR | O_CREAT); }), 0);
  const auto forks = [] {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    return static_cast<long>(::waitpid(child, nullptr, 0));
  };
  EXPECT_EQ(in_child(profile, forks), 0);
  if (::geteuid() == 0) {
    const auto becomes = [] {
      return ::setresgid(65534, 65534, 65534) == 0 && ::setresuid(65534, 65534, 65534) == 0 ? 0 : -1;
    };
    EXPECT_EQ(in_child(profile, becomes), 0);
    fs::permissions(root_ / "ro/file", fs::perms::none);
    EXPECT_EQ(::chown((root_ / "ro/file").c_str(), 1, 1), 0);
    EXPECT_EQ(in_child(profile, [&] { return open_and_close(root_ / "ro/file"); }), EACCES)
        << "root has no more than others there";
  }
  if (!has_landlock()) GTEST_SKIP() << "no Landlock in this kernel";
  EXPECT_EQ(in_child(profile, [&] { return open_and_close(root_ / "outside/file"); }), EACCES);
  EXPECT_EQ(in_child(profile, [&] { return open_and_close(root_ / "node/key"); }), EACCES);
  EXPECT_EQ(in_child(profile, [&] { return open_and_close(root_ / "ro/new", O_RDWR | O_CREAT); }), EACCES);
}

TEST_F(SandboxTest, AControlListensWhereItIsToldAndCallsWhomItLikes) {
  if (landlock_version() < 4) GTEST_SKIP() << "no limits of TCP in this kernel";
  Profile profile = control();
  EXPECT_EQ(in_child(profile, [] { return tcp(0, ::bind); }), 0);
  EXPECT_EQ(in_child(profile, [] { return tcp(47999, ::bind); }), EACCES);
  profile.tcp_ports = {47999};
  EXPECT_EQ(in_child(profile, [] { return tcp(47999, ::bind); }), 0);
  EXPECT_EQ(in_child(profile, [] { return tcp(1, ::connect); }), ECONNREFUSED);
}

TEST_F(SandboxTest, AControlTurnsTheZoneOfALinkLocalAddressIntoANumberAndBack) {
  const auto number = [] { return ::if_nametoindex("lo") != 0 ? 0 : -1; };
  EXPECT_EQ(in_child(control(), number), 0);
  const unsigned lo = ::if_nametoindex("lo");
  char name[IF_NAMESIZE];
  const auto named = [&] { return ::if_indextoname(lo, name) != nullptr ? 0 : -1; };
  EXPECT_EQ(in_child(control(), named), 0);
  const auto found = [] {
    addrinfo hints{};
    hints.ai_flags = AI_NUMERICHOST;
    addrinfo* address = nullptr;
    return ::getaddrinfo("fe80::1%lo", "7400", &hints, &address) == 0 && refused_calls() == 0 ? 0 : -1;
  };
  EXPECT_EQ(in_child(control(), found), 0);
}

TEST_F(SandboxTest, ThreadsThatAreThereGiveUpTheSame) {
  const fs::path file = root_ / "outside/file";
  const pid_t child = fork();
  if (child == 0) {
    std::atomic<bool> confined{false};
    std::atomic<int> opened{-1};
    std::thread before([&] {
      while (!confined) std::this_thread::yield();
      opened = open_and_close(file) < 0 ? errno : 0;
    });
    const auto state = apply(control(), true);
    confined = true;
    before.join();
    _exit(state ? opened.load() : kNoSandbox);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), has_landlock() ? EACCES : 0);
}

TEST_F(SandboxTest, WhatIsNotAllowedIsCountedAndTold) {
  const auto deed = [&] {
    for (int i = 0; i < 3; ++i) open_and_close(root_ / "outside/file");
    const auto first = take_news();
    open_and_close(root_ / "outside/file");
    const auto second = take_news();
    const bool good = refused_calls() == 4 && first.size() == 1 && second.size() == 1 &&
                      take_news().empty() && first[0].find("openat (257), 3 times") != std::string::npos &&
                      first[0].ends_with("/outside/file");
    return good ? 0 : -1;
  };
  EXPECT_EQ(in_child(dataplane(PortKind::kSockets), deed), 0);
}

TEST_F(SandboxTest, ACallOfANewerKernelIsAsIfThereWereNone) {
  EXPECT_EQ(in_child(control(), [] { return ::syscall(510); }), ENOSYS);
}

TEST_F(SandboxTest, WhereItIsNotWantedOnlyPrivilegesGo) {
  const auto deed = [&] { return open_and_close(root_ / "outside/file"); };
  EXPECT_EQ(in_child(dataplane(PortKind::kSockets), deed, false), 0);
  const auto no_new = [] { return ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? 0 : -1; };
  EXPECT_EQ(in_child(dataplane(PortKind::kSockets), no_new, false), 0);
}

TEST_F(SandboxTest, StatesPassAsANumberAndSayWhatIsMissing) {
  for (const State& state :
       {State{}, State{.off = Off::kAsked}, State{.calls = true, .landlock = 7, .rings = true}})
    EXPECT_EQ(State::of_bits(state.bits()), state);
  EXPECT_EQ(State::of_bits(~0ULL).off, Off::kNot) << "any number is some state";
  EXPECT_EQ((State{.calls = true, .landlock = 4}).text(), "system calls, files, TCP");
  EXPECT_EQ((State{.calls = true}).text(), "system calls; this kernel cannot limit: files, TCP");
  EXPECT_EQ((State{.off = Off::kAsked}).text(), "off, as node.toml says");
}

}  // namespace
}  // namespace sluice::sandbox
