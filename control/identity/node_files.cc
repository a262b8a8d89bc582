// SPDX-License-Identifier: Apache-2.0
#include "control/identity/node_files.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "dataplane/base/unique_fd.h"
#include "dataplane/base/write_all.h"

namespace sluice::identity {
namespace {

constexpr size_t kFileBytesMax = 64U << 10;

Error failed(const std::filesystem::path& file,
             const std::string& remedy = "check its permissions and the disk") {
  const int why = errno;
  if (is_shortage(why)) return shortage(file, why);
  return {ErrorCode::kConfiguration, file.string() + ": " + std::strerror(why) + "; " + remedy};
}

}  // namespace

bool is_shortage(int error_number) {
  return error_number == EMFILE || error_number == ENFILE || error_number == ENOMEM;
}

Error shortage(const std::filesystem::path& file, int error_number) {
  return {ErrorCode::kResources, file.string() + ": " + std::strerror(error_number) +
                                     "; wait for sessions to end, or raise the limit of open files"};
}

Result<std::string> read_small_file(const std::filesystem::path& file, bool* not_found) {
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (not_found != nullptr) *not_found = !fd && errno == ENOENT;
  if (!fd) return failed(file, "check that it exists and can be read");
  std::string text(kFileBytesMax + 1, '\0');
  size_t have = 0;
  while (have < text.size()) {
    const ssize_t got = ::read(fd.get(), text.data() + have, text.size() - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed(file, "check that it is a file");
    if (got == 0) break;
    have += static_cast<size_t>(got);
  }
  if (have > kFileBytesMax)
    return Error{ErrorCode::kConfiguration,
                 file.string() + ": longer than 64 KiB; this is not the file that belongs here"};
  text.resize(have);
  return text;
}

Status check_guarded(const std::filesystem::path& file, Guard against) {
  struct stat info {};
  const mode_t bits = against == Guard::kOthers ? S_IWOTH : S_IWOTH | S_IWGRP;
  if (::stat(file.c_str(), &info) != 0 || (info.st_mode & bits) == 0) return {};
  const bool group = (info.st_mode & bits & S_IWGRP) != 0;
  return Error{ErrorCode::kConfiguration,
               file.string() + ": " + (group ? "others than its owner" : "others") +
                   " may write it, and so say whom this node trusts, or who it is; run: chmod " +
                   (against == Guard::kOthers ? "o-w " : "go-w ") + file.string()};
}

Result<std::string> read_guarded_file(const std::filesystem::path& file) {
  if (Status status = check_guarded(file, Guard::kGroupAndOthers); !status) return status.error();
  return read_small_file(file);
}

Status write_small_file(const std::filesystem::path& file, std::string_view text, mode_t mode,
                        Replace replace) {
  const std::filesystem::path directory = file.parent_path();
  std::string temporary = (directory / ("." + file.filename().string() + ".XXXXXX")).string();
  const UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));  // mode 0600
  if (!fd) return failed(directory);
  const unsigned flags = replace == Replace::kYes ? 0 : RENAME_NOREPLACE;
  if (!base::write_all(fd.get(), text.data(), text.size()) || ::fchmod(fd.get(), mode) != 0 ||
      ::fsync(fd.get()) != 0 ||
      ::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, file.c_str(), flags) != 0) {
    const Error error = failed(file);
    ::unlink(temporary.c_str());
    return error;
  }
  const UniqueFd parent(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!parent || ::fsync(parent.get()) != 0) return failed(directory);
  return {};
}

Result<bool> remove_small_file(const std::filesystem::path& file) {
  if (::unlink(file.c_str()) != 0) return errno == ENOENT ? Result<bool>(false) : Result<bool>(failed(file));
  const UniqueFd parent(::open(file.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!parent || ::fsync(parent.get()) != 0) return failed(file.parent_path());
  return true;
}

Status make_directory(const std::filesystem::path& directory, mode_t mode) {
  if (::mkdir(directory.c_str(), mode) != 0 && errno != EEXIST) return failed(directory);
  struct stat info {};
  if (::stat(directory.c_str(), &info) != 0) return failed(directory);
  if (!S_ISDIR(info.st_mode)) {
    errno = ENOTDIR;
    return failed(directory, "remove it");
  }
  return {};
}

}  // namespace sluice::identity
