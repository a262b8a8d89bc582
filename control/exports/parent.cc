// SPDX-License-Identifier: Apache-2.0
#include "control/exports/parent.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <vector>

#include "control/exports/beneath.h"
#include "control/exports/letters.h"

namespace sluice::exports {

int Parent::open(const std::string& path) {
  const std::string directory = parent_of(path);
  if (now_.fd && now_.path == directory) return now_.fd.get();
  now_ = {};
  now_.path = directory;
  now_.fd = open_beneath(tree_fd_, directory, O_RDONLY | O_DIRECTORY);
  if (!now_.fd && errno == ENOENT) errno = make_directories(tree_fd_, directory, &now_.fd);
  if (!now_.fd) return -1;
  now_.folding = everywhere_;
  if (!now_.folding && folds_case_by_itself(now_.fd.get())) now_.folding.emplace();
  return now_.fd.get();
}

bool Parent::has_with_other_letters(const std::string& name) {
  if (!now_.folding) return false;
  const auto given = now_.given.find(folded(name));
  if (given != now_.given.end()) return given->second != name;
  struct stat info {};
  if (!now_.folding->keeps_case || ::fstatat(now_.fd.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
    return false;
  if (!now_.names) {
    const auto names = names_in(now_.fd.get()).value_or(std::vector<std::string>());
    now_.names.emplace(names.begin(), names.end());
  }
  return !now_.names->contains(name);
}

void Parent::gave(const std::string& name) {
  if (!now_.folding) return;
  if (now_.names) now_.names->insert(name);
  now_.given.emplace(folded(name), name);
}

}  // namespace sluice::exports
