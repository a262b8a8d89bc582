// SPDX-License-Identifier: Apache-2.0
#include "control/catalog/entry.h"

#include <iterator>

#include "dataplane/base/path.h"

namespace sluice::catalog {
namespace {

constexpr std::string_view kFailureTexts[] = {
    "",
    "was not there when it was to be read; only a directory has a slash behind its name",
    "permission denied",
    "changed while it was read",
    "could not be read",
    "is a device, a pipe or a socket",
    "has a name that is too long, reserved, or not possible in the destination's file system",
    "exists at the destination; replace it with --overwrite",
    "could not be written at the destination",
    "has other bytes than its source summed: it changed while it was sent, or was damaged between the nodes' "
    "memories; send it again",
    "failed",
    "did not fit into the destination's file system; free some space",
    "was to be sent together with small files that changed, or were damaged, meanwhile; send it again",
    "has more extended attributes, or longer ACLs, than are kept of a name (64 KiB, and 16 MiB of all large "
    "files)",
    "has extended attributes or an ACL that the destination's file system does not take",
    "has the name of another one there, whose file system takes both for the same (letters of either case, "
    "forms of Unicode, or dots and spaces at the end); rename one of them",
    "something of another kind has that name at the destination, which is never replaced; remove it there, "
    "or "
    "rename one of them",
    "another session writes to that name at the destination, or has paused while it did; wait for it, or "
    "cancel "
    "it",
    "needs a link more than the destination's file system allows, to a file or for directories in one; "
    "divide "
    "them",
    "another file system is mounted there at the destination, or above it; send what belongs into that one "
    "by "
    "itself",
    "is in a file system at the destination that may only be read; mount it for writing",
    "its directory at the destination may not be written to; give the user of sluice-control there the right "
    "to "
    "it",
    "it, or its directory at the destination, may not be changed (chattr +i or +a); take that away there "
    "(chattr -i -a)",
    "does not say how long it is, as files of /proc and /sys; copy it to a file, and send that",
    "a digest of it is not that of the list (--manifest); look which of the two is right",
    "is a hard link to a file that did not arrive; see what is said of that one",
};
static_assert(std::size(kFailureTexts) == kFailures);

}  // namespace

std::string_view failure_text(Failure failure) {
  if (failure == kOtherTime)
    return "arrived, with another time: the destination's file system cannot hold its own";
  const auto i = static_cast<size_t>(failure);
  return i < std::size(kFailureTexts) ? kFailureTexts[i]
                                      : kFailureTexts[static_cast<size_t>(Failure::kOther)];
}

Failure failure_of(uint32_t number) {
  if (number == static_cast<uint32_t>(kOtherTime)) return kOtherTime;
  return number < kFailures ? static_cast<Failure>(number) : Failure::kOther;
}

void Shortfall::note(const std::string& path, Failure failure) {
  if (failure != kOtherTime) ++(failure == Failure::kSpecial ? left_out : failed);
  if (names.size() < kFailuresKept) names.push_back({.path = path, .failure = failure});
}

void Shortfall::forget_failures() {
  failed = left_out = 0;
  std::erase_if(names, [](const FailedName& name) { return name.failure != kOtherTime; });
}

bool good_path(std::string_view path) {
  if (path.empty() || path.size() > base::kPathBytesMax || path.find('\0') != std::string_view::npos)
    return false;
  while (true) {
    const size_t slash = path.find('/');
    const std::string_view name = path.substr(0, slash);
    if (name.empty() || name == "." || name == ".." || name.size() > base::kNameBytesMax) return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

}  // namespace sluice::catalog
