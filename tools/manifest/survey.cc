// SPDX-License-Identifier: Apache-2.0
#include "tools/manifest/survey.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "control/exports/temporary.h"

namespace sluice::manifest {

std::optional<FileId> id_of(int fd) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return std::nullopt;
  return FileId(info.st_dev, info.st_ino);
}

Survey::Survey(UniqueFd top, std::string start, std::vector<FileId> without, OnProblem on_problem)
    : start_(std::move(start)),
      without_(std::move(without)),
      on_problem_(std::move(on_problem)),
      walk_(std::move(top), exports::Walk::Mounts::kCross, pulse_) {}

std::string Survey::full(const std::string& path) const {
  if (start_.empty()) return path;
  return path.empty() ? start_ : start_ + "/" + path;
}

void Survey::failed(const std::string& path, int reason) { on_problem_(full(path), std::strerror(reason)); }

std::optional<std::string> Survey::next() {
  using Step = exports::Walk::Step;
  if (!begun_) {
    begun_ = true;
    if (const int reason = walk_.begin(); reason != 0) {
      failed("", reason);
      return std::nullopt;
    }
  }
  for (;;) {
    const Step step = walk_.next();
    if (step == Step::kEnd) return std::nullopt;
    if (step == Step::kFailed) {
      failed(walk_.directory(), errno);
      walk_.skip();
    }
    if (step != Step::kName) continue;
    if (std::optional<std::string> name = look()) return name;
  }
}

std::optional<std::string> Survey::look() {
  struct stat info {};
  if (::fstatat(walk_.fd(), walk_.name().c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno != ENOENT) failed(walk_.path(), errno);
    return std::nullopt;
  }
  if (S_ISDIR(info.st_mode)) {
    const int reason = walk_.enter();
    if (reason != 0 && reason != ENOENT) failed(walk_.path(), reason);
    return std::nullopt;
  }
  if (!S_ISREG(info.st_mode)) {
    ++others_;
    return std::nullopt;
  }
  const bool left_out =
      exports::is_temporary_name(walk_.name()) ||
      std::find(without_.begin(), without_.end(), FileId(info.st_dev, info.st_ino)) != without_.end();
  if (left_out) return std::nullopt;
  return full(walk_.path());
}

}  // namespace sluice::manifest
