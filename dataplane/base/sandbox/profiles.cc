// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/sandbox/profiles.h"

#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/sockios.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <initializer_list>

namespace sluice::sandbox {
namespace {

constexpr uint64_t bit(int capability) { return 1ULL << capability; }
// socket(2) with SOCK_NONBLOCK and SOCK_CLOEXEC or without.
constexpr uint64_t kSocketKind = 0xF;
constexpr uint64_t kNamespaces =
    CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
constexpr uint64_t kVmaName = 0x53564d41;  // PR_SET_VMA

// Of any program with threads, memory, clocks and descriptors.
constexpr const char* kOrdinary[] = {
    // memory; what can be executed is judged below
    "brk",
    "madvise",
    "mlock",
    "mlock2",
    "mremap",
    "munlock",
    "munmap",
    "memfd_create",
    // threads, and the ends of them
    "exit",
    "exit_group",
    "futex",
    "get_robust_list",
    "getcpu",
    "getpid",
    "gettid",
    "membarrier",
    "rseq",
    "sched_get_priority_max",
    "sched_get_priority_min",
    "sched_getaffinity",
    "sched_getparam",
    "sched_getscheduler",
    "sched_setaffinity",
    "sched_yield",
    "set_robust_list",
    "set_tid_address",
    // signals
    "restart_syscall",
    "rt_sigaction",
    "rt_sigpending",
    "rt_sigprocmask",
    "rt_sigreturn",
    "rt_sigsuspend",
    "rt_sigtimedwait",
    "sigaltstack",
    // clocks
    "clock_getres",
    "clock_gettime",
    "clock_nanosleep",
    "gettimeofday",
    "nanosleep",
    "time",
    "timerfd_create",
    "timerfd_gettime",
    "timerfd_settime",
    // descriptors that are open
    "close",
    "close_range",
    "dup",
    "dup2",
    "dup3",
    "fcntl",
    "fstat",
    "fstatfs",
    "lseek",
    "newfstatat",
    "pread64",
    "preadv",
    "preadv2",
    "pwrite64",
    "pwritev",
    "pwritev2",
    "read",
    "readv",
    "write",
    "writev",
    "ftruncate",
    "fallocate",
    "fdatasync",
    "fsync",
    "getdents64",
    // waiting
    "epoll_create",
    "epoll_create1",
    "epoll_ctl",
    "epoll_pwait",
    "epoll_pwait2",
    "epoll_wait",
    "eventfd",
    "eventfd2",
    "poll",
    "ppoll",
    "pselect6",
    "select",
    "signalfd",
    "signalfd4",
    "pipe",
    "pipe2",
    // sockets that are open
    "accept",
    "accept4",
    "getpeername",
    "getsockname",
    "getsockopt",
    "recvfrom",
    "recvmmsg",
    "recvmsg",
    "sendmmsg",
    "sendmsg",
    "sendto",
    "setsockopt",
    "shutdown",
    // who and where
    "getegid",
    "geteuid",
    "getgid",
    "getgroups",
    "getppid",
    "getrandom",
    "getresgid",
    "getresuid",
    "getrusage",
    "getuid",
    "sysinfo",
    "times",
    "uname",
};

// DPDK: memory of a NUMA node, hugepages in files that are locked.
constexpr const char* kDpdk[] = {"flock", "get_mempolicy", "set_mempolicy", "mbind"};

// Files beneath directories, names, and their attributes: Landlock bounds where, and the modes of the files
// who.
constexpr const char* kFiles[] = {
    "access",
    "chdir",
    "chmod",
    "chown",
    "copy_file_range",
    "creat",
    "faccessat",
    "faccessat2",
    "fadvise64",
    "fchdir",
    "fchmod",
    "fchmodat",
    "fchown",
    "fchownat",
    "fgetxattr",
    "fremovexattr",
    "fsetxattr",
    "flistxattr",
    "flock",
    "futimesat",
    "getcwd",
    "getdents",
    "getxattr",
    "inotify_add_watch",
    "inotify_init1",
    "inotify_rm_watch",
    "lchown",
    "lgetxattr",
    "lremovexattr",
    "lsetxattr",
    "removexattr",
    "setxattr",
    "link",
    "linkat",
    "listxattr",
    "llistxattr",
    "lstat",
    "mkdir",
    "mkdirat",
    "name_to_handle_at",
    "open",
    "openat",
    "openat2",
    "readahead",
    "readlink",
    "readlinkat",
    "rename",
    "renameat",
    "renameat2",
    "rmdir",
    "sendfile",
    "splice",
    "stat",
    "statfs",
    "statx",
    "symlink",
    "symlinkat",
    "sync_file_range",
    "syncfs",
    "truncate",
    "umask",
    "unlink",
    "unlinkat",
    "utime",
    "utimensat",
    "utimes",
};

void allow(Profile& profile, const char* call, unsigned index, std::initializer_list<uint64_t> values,
           uint64_t mask = ~0ULL) {
  for (const uint64_t value : values) profile.rules.push_back({call, {{index, mask, value & mask}}});
}

// ioctl's command is an int: what stands in the upper half of the register does not count.
void allow_ioctl(Profile& profile, std::initializer_list<uint64_t> commands) {
  allow(profile, "ioctl", 1, commands, 0xFFFFFFFF);
}

void allow_socket(Profile& profile, int family, int kind) {
  profile.rules.push_back({"socket",
                           {{.index = 0, .value = static_cast<uint64_t>(family)},
                            {.index = 1, .mask = kSocketKind, .value = static_cast<uint64_t>(kind)}}});
}

Profile ordinary(const char* key) {
  Profile profile;
  profile.key = key;
  profile.calls.assign(std::begin(kOrdinary), std::end(kOrdinary));
  // A thread, never a process or one in other namespaces.
  allow(profile, "clone", 0, {CLONE_THREAD}, CLONE_THREAD | kNamespaces);
  allow(profile, "prctl", 0,
        {PR_SET_NAME, PR_GET_NAME, PR_CAPBSET_READ, PR_SET_TIMERSLACK, kVmaName, PR_GET_DUMPABLE},
        0xFFFFFFFF);
  // Limits of its own are read, as sysconf does.
  profile.rules.push_back(
      {"prlimit64", {{.index = 0, .mask = 0xFFFFFFFF, .value = 0}, {.index = 2, .value = 0}}});
  allow_ioctl(profile, {TCGETS, FIONREAD, FIONBIO});
  return profile;
}

}  // namespace

Profile dataplane_profile(const DataplaneNeeds& needs) {
  Profile profile = ordinary("[dataplane] sandbox");
  if (needs.raw_sockets) profile.capabilities = bit(CAP_NET_RAW);
  // Rings are there already: what they may do is limited by the kernel's own means (storage/ring.h).
  profile.calls.push_back("io_uring_enter");
  // Nothing new can be executed.
  allow(profile, "mmap", 2, {0}, PROT_EXEC);
  allow(profile, "mprotect", 2, {0}, PROT_EXEC);
  // At the end its sockets go.
  profile.calls_on_paths = {"unlink", "unlinkat", "rmdir"};
  profile.paths = {{needs.run_dir, Access::kRemove}};
  if (needs.port != PortKind::kSockets)
    profile.calls.insert(profile.calls.end(), std::begin(kDpdk), std::end(kDpdk));
  switch (needs.port) {
    case PortKind::kSockets:
      // One for each path, of which peers come and go.
      for (const int family : {AF_INET, AF_INET6}) allow_socket(profile, family, SOCK_DGRAM);
      profile.calls.insert(profile.calls.end(), {"bind", "connect"});
      allow_ioctl(profile, {SIOCGIFFLAGS});  // is its link up?
      break;
    case PortKind::kMemif:
      // Memory comes from the peer, or is made for it. A server is only called.
      if (needs.memif_client) {
        allow_socket(profile, AF_UNIX, SOCK_SEQPACKET);
        profile.calls.push_back("connect");
      }
      profile.abstract_sockets = needs.abstract_socket;
      break;
    case PortKind::kVhost:
      allow_socket(profile, AF_UNIX, SOCK_STREAM);
      profile.calls.insert(profile.calls.end(), {"bind", "connect", "listen"});
      break;
    case PortKind::kKernel:
      if (needs.interface_statistics) {
        profile.calls_on_paths.insert(profile.calls_on_paths.end(), {"open", "openat"});
        profile.paths.insert(profile.paths.end(),
                             {{"/sys/class/net", Access::kRead}, {"/sys/devices", Access::kRead}});
      }
      allow_ioctl(profile, {SIOCGIFFLAGS, SIOCGIFMTU, SIOCGIFINDEX, SIOCETHTOOL, SIOCGIFHWADDR});
      break;
    case PortKind::kCard:
      profile.calls_on_paths.insert(profile.calls_on_paths.end(),
                                    {"open", "openat", "readlink", "readlinkat"});
      profile.paths.insert(profile.paths.end(), {{"/sys", Access::kRead},
                                                 {"/dev/vfio", Access::kUse},
                                                 {"/dev/infiniband", Access::kUse},
                                                 {"/proc/self", Access::kRead}});
      std::erase_if(profile.rules,
                    [](const CallRule& rule) { return rule.call == std::string_view("ioctl"); });
      profile.calls.push_back("ioctl");
      allow_socket(profile, AF_INET, SOCK_DGRAM);
      allow_socket(profile, AF_NETLINK, SOCK_RAW);
      profile.calls.insert(profile.calls.end(), {"bind", "connect"});
      break;
  }
  return profile;
}

Profile control_profile(const ControlNeeds& needs) {
  Profile profile = ordinary("[control] sandbox");
  // As root: files of any user beneath the exports, and a port below 1024.
  profile.capabilities = bit(CAP_CHOWN) | bit(CAP_DAC_OVERRIDE) | bit(CAP_DAC_READ_SEARCH) | bit(CAP_FOWNER) |
                         bit(CAP_LEASE) | bit(CAP_NET_BIND_SERVICE);
  profile.calls.insert(profile.calls.end(), std::begin(kFiles), std::end(kFiles));
  profile.calls.push_back("capget");  // may it give files away?
  // The name service loads libraries when it is first asked.
  profile.calls.insert(profile.calls.end(), {"mmap", "mprotect", "bind", "connect", "listen", "socketpair"});
  for (const int family : {AF_INET, AF_INET6}) {
    for (const int kind : {SOCK_STREAM, SOCK_DGRAM}) allow_socket(profile, family, kind);
  }
  for (const int kind : {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET}) allow_socket(profile, AF_UNIX, kind);
  allow_socket(profile, AF_NETLINK, SOCK_RAW);  // getaddrinfo: which addresses this host has
  // The zone of a link-local address is the name of an interface: looked up, and shown again.
  allow_ioctl(profile, {FS_IOC_GETVERSION, FS_IOC_GETFLAGS, SIOCGIFINDEX, SIOCGIFNAME});
  profile.tcp_connect = true;
  profile.tcp_ports = needs.tcp_ports;

  // A name server, a user, a time zone may change: what stands in /etc is replaced then, and a rule for a
  // file would be one for what is no more. So it is the directory.
  for (const char* path :
       {"/etc", "/usr/lib", "/lib", "/lib64", "/usr/share/zoneinfo", "/run/systemd/resolve",
        "/run/resolvconf", "/run/NetworkManager", "/run/nscd", "/var/lib/sss", "/dev/urandom", "/dev/random",
        "/proc/self", "/proc/stat", "/proc/meminfo", "/proc/cpuinfo", "/proc/sys", "/sys/devices/system/cpu"})
    profile.paths.push_back({path, Access::kRead});
  profile.paths.push_back({"/dev/null", Access::kUse});
  profile.paths.push_back({needs.node, Access::kRead});
  for (const auto& directory : needs.authorities) profile.paths.push_back({directory, Access::kRead});
  profile.paths.push_back({needs.run, Access::kServe});
  profile.paths.push_back({needs.state, Access::kChange});
  profile.paths.insert(profile.paths.end(), needs.exports.begin(), needs.exports.end());
  return profile;
}

Profile users_profile(const std::filesystem::path& run, const std::vector<PathRule>& exports) {
  Profile profile = ordinary("[control] sandbox");
  profile.capabilities = bit(CAP_SETUID) | bit(CAP_SETGID);
  profile.calls.insert(profile.calls.end(), std::begin(kFiles), std::end(kFiles));
  // A process for each user, which gives up what this one has.
  profile.calls.insert(profile.calls.end(),
                       {"capget", "capset", "setgroups", "setresgid", "setresuid", "wait4"});
  allow(profile, "clone", 0, {0}, CLONE_VM | CLONE_THREAD | kNamespaces);
  allow(profile, "prctl", 0, {PR_SET_KEEPCAPS, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT}, 0xFFFFFFFF);
  profile.rules.push_back(
      {"prctl", {{.index = 0, .mask = 0xFFFFFFFF, .value = PR_SET_DUMPABLE}, {.index = 1, .value = 0}}});
  // The name service, which asks daemons of this host.
  profile.calls.insert(profile.calls.end(), {"mmap", "mprotect", "connect", "bind"});
  for (const int kind : {SOCK_STREAM, SOCK_DGRAM}) allow_socket(profile, AF_UNIX, kind);
  allow_socket(profile, AF_NETLINK, SOCK_RAW);
  allow_ioctl(profile, {FS_IOC_GETVERSION, FS_IOC_GETFLAGS});
  for (const char* path : {"/etc", "/usr/lib", "/lib", "/lib64", "/usr/share/zoneinfo", "/run/nscd",
                           "/run/systemd/userdb", "/var/lib/sss", "/proc/self", "/proc/sys"})
    profile.paths.push_back({path, Access::kRead});
  profile.paths.push_back({"/dev/null", Access::kUse});
  profile.paths.push_back({run, Access::kRemove});
  profile.paths.insert(profile.paths.end(), exports.begin(), exports.end());
  return profile;
}

Profile caller_profile(const std::vector<PathRule>& files) {
  Profile profile = ordinary("none");
  // As root: files of any user, among those that are named.
  profile.capabilities = bit(CAP_CHOWN) | bit(CAP_DAC_OVERRIDE) | bit(CAP_DAC_READ_SEARCH) | bit(CAP_FOWNER);
  profile.calls.insert(profile.calls.end(), std::begin(kFiles), std::end(kFiles));
  profile.calls.insert(profile.calls.end(), {"mmap", "mprotect", "connect"});
  allow_socket(profile, AF_UNIX, SOCK_SEQPACKET);
  allow_ioctl(profile, {FS_IOC_GETVERSION, FS_IOC_GETFLAGS});
  profile.paths.push_back({"/dev/null", Access::kUse});
  profile.paths.push_back({"/proc/self", Access::kRead});
  profile.paths.insert(profile.paths.end(), files.begin(), files.end());
  return profile;
}

}  // namespace sluice::sandbox
