// Cold. See landlock.h.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/sandbox/landlock.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace sluice::sandbox {
namespace {

// linux/landlock.h of a newer kernel than Debian's headers are of.
constexpr long kCreateRuleset = 444;
constexpr long kAddRule = 445;
constexpr long kRestrictSelf = 446;
constexpr uint32_t kAskVersion = 1;
constexpr int kPathBeneath = 1;
constexpr int kNetPort = 2;

constexpr uint64_t kWriteFile = 1 << 1;
constexpr uint64_t kReadFile = 1 << 2;
constexpr uint64_t kReadDirectory = 1 << 3;
constexpr uint64_t kRemoveDirectory = 1 << 4;
constexpr uint64_t kRemoveFile = 1 << 5;
constexpr uint64_t kMakeDirectory = 1 << 7;
constexpr uint64_t kMakeFile = 1 << 8;
constexpr uint64_t kMakeSocket = 1 << 9;
constexpr uint64_t kMakeLink = 1 << 12;
constexpr uint64_t kRefer = 1 << 13;     // version 2: another directory
constexpr uint64_t kTruncate = 1 << 14;  // version 3
constexpr uint64_t kIoctl = 1 << 15;     // version 5: of devices
constexpr uint64_t kOfFiles = 1 /* execute */ | kWriteFile | kReadFile | kTruncate | kIoctl;

constexpr uint64_t kBindTcp = 1 << 0;  // version 4
constexpr uint64_t kConnectTcp = 1 << 1;
constexpr uint64_t kAbstractSockets = 1 << 0;  // version 6
constexpr uint64_t kSignals = 1 << 1;

struct Ruleset {
  uint64_t files;
  uint64_t net;
  uint64_t scoped;
};
struct [[gnu::packed]] PathBeneath {
  uint64_t allowed;
  int32_t parent;
};
struct NetPort {
  uint64_t allowed;
  uint64_t port;
};

uint64_t files_of(int version) {
  const int bits = version >= 5 ? 16 : version >= 3 ? 15 : 14;
  return (1ULL << bits) - 1;
}

uint64_t rights_of(Access access) {
  constexpr uint64_t kRead = kReadFile | kReadDirectory;
  constexpr uint64_t kUse = kRead | kWriteFile | kTruncate;
  constexpr uint64_t kChange =
      kUse | kRemoveDirectory | kRemoveFile | kMakeDirectory | kMakeFile | kMakeLink | kRefer;
  switch (access) {
    case Access::kRemove:
      return kRemoveFile | kRemoveDirectory;
    case Access::kRead:
      return kRead;
    case Access::kUse:
      return kUse;
    case Access::kChange:
      return kChange;
    case Access::kServe:
      return kChange | kMakeSocket;
  }
  return 0;
}

// Names in /proc are made anew when memory is short, and a rule is of what had the name: a descriptor keeps
// it.
void keep_if_of_proc(UniqueFd fd) {
  static std::vector<UniqueFd> kept;
  struct statfs info {};
  if (::fstatfs(fd.get(), &info) == 0 && info.f_type == PROC_SUPER_MAGIC) kept.push_back(std::move(fd));
}

Error landlock_refuses(const std::string& what, int reason) {
  return {ErrorCode::kInternal, "Landlock does not take " + what + ": " + std::strerror(reason)};
}

Status add_path(int ruleset, const PathRule& rule, uint64_t handled) {
  UniqueFd parent(::open(rule.path.c_str(), O_PATH | O_CLOEXEC));
  if (!parent) return {};
  // Exports are among them: a file system that does not answer is not asked.
  struct statx info {};
  uint64_t allowed = rights_of(rule.access) & handled;
  if (::statx(parent.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &info) == 0 &&
      !S_ISDIR(info.stx_mode))
    allowed &= kOfFiles;
  const PathBeneath beneath{.allowed = allowed, .parent = parent.get()};
  if (::syscall(kAddRule, ruleset, kPathBeneath, &beneath, 0) != 0)
    return landlock_refuses(rule.path.string(), errno);
  if (rule.path.native().starts_with("/proc")) keep_if_of_proc(std::move(parent));
  return {};
}

}  // namespace

int landlock_version() {
  const long version = ::syscall(kCreateRuleset, nullptr, 0, kAskVersion);
  return version > 0 ? static_cast<int>(version) : 0;
}

Result<UniqueFd> make_ruleset(const Profile& profile, int version) {
  if (version < 2) return UniqueFd();
  Ruleset wanted{.files = files_of(version), .net = 0, .scoped = 0};
  if (version >= 4) wanted.net = kBindTcp | (profile.tcp_connect ? 0 : kConnectTcp);
  if (version >= 6) wanted.scoped = kSignals | (profile.abstract_sockets ? 0 : kAbstractSockets);
  UniqueFd ruleset(static_cast<int>(::syscall(kCreateRuleset, &wanted, sizeof wanted, 0)));
  if (!ruleset) return landlock_refuses("a set of rules", errno);
  for (const PathRule& rule : profile.paths) {
    if (Status added = add_path(ruleset.get(), rule, wanted.files); !added) return added.error();
  }
  if (version < 4) return ruleset;
  for (const uint16_t port : profile.tcp_ports) {
    const NetPort allowed{.allowed = kBindTcp, .port = port};
    if (::syscall(kAddRule, ruleset.get(), kNetPort, &allowed, 0) != 0)
      return landlock_refuses("port " + std::to_string(port), errno);
  }
  return ruleset;
}

int restrict_this_thread(int ruleset) { return ::syscall(kRestrictSelf, ruleset, 0) == 0 ? 0 : errno; }

}  // namespace sluice::sandbox
