// SPDX-License-Identifier: Apache-2.0
#include "control/exports/letters.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "control/exports/beneath.h"

namespace sluice::exports {
namespace {

char other_case(char c) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return letter ? static_cast<char>(c ^ ('a' ^ 'A')) : c;
}

}  // namespace

bool folds_case(int directory_fd, const std::string& present) {
  std::string other = present;
  std::transform(other.begin(), other.end(), other.begin(), other_case);
  struct stat one {};
  struct stat two {};
  return other != present && ::fstatat(directory_fd, other.c_str(), &two, AT_SYMLINK_NOFOLLOW) == 0 &&
         ::fstatat(directory_fd, present.c_str(), &one, AT_SYMLINK_NOFOLLOW) == 0 &&
         one.st_ino == two.st_ino && one.st_dev == two.st_dev;
}

bool has_other_letters(int directory_fd, const std::string& name) {
  struct stat info {};
  if (::fstatat(directory_fd, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return false;
  const auto names = names_in(directory_fd);
  return names && std::find(names->begin(), names->end(), name) == names->end();
}

bool folds_case_by_itself(int directory_fd) {
  int flags = 0;
  return ::ioctl(directory_fd, FS_IOC_GETFLAGS, &flags) == 0 && (flags & FS_CASEFOLD_FL) != 0;
}

bool keeps_case(int directory_fd) {
  const char* const name = "Sluice";
  const UniqueFd made(::openat(directory_fd, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  const auto names = made ? names_in(directory_fd) : std::nullopt;
  ::unlinkat(directory_fd, name, 0);
  return names && std::find(names->begin(), names->end(), name) != names->end();
}

std::string folded(std::string name) {
  for (char& c : name) c = c >= 'A' && c <= 'Z' ? other_case(c) : c;
  return name;
}

}  // namespace sluice::exports
