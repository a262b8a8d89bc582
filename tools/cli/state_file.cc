// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/state_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "control/identity/node_files.h"
#include "control/identity/sha256.h"
#include "dataplane/base/read_rest.h"
#include "dataplane/base/write_all.h"
#include "tools/cli/format.h"

namespace sluice::cli {
namespace {

constexpr size_t kSpareBytes = 1U << 20;  // of the past, before the file is written anew
constexpr size_t kNameDigits = 12;

Error cannot_remember(const std::filesystem::path& path, const char* what) {
  return {
      ErrorCode::kConfiguration,
      fmt::format("cannot {} {}, where this command remembers what it has done: {}; name another file with "
                  "--state",
                  what, printable(path.string()), std::strerror(errno))};
}

enum class Stands : uint8_t { kInItsPlace, kNowhere, kReplaced };

// In its place also where the path cannot be looked at.
Stands how_it_stands(const std::filesystem::path& path, const UniqueFd& open_file) {
  struct stat at {};
  struct stat its {};
  if (::lstat(path.c_str(), &at) != 0)
    return errno == ENOENT || errno == ENOTDIR ? Stands::kNowhere : Stands::kInItsPlace;
  if (::fstat(open_file.get(), &its) != 0) return Stands::kInItsPlace;
  return at.st_dev == its.st_dev && at.st_ino == its.st_ino ? Stands::kInItsPlace : Stands::kReplaced;
}

std::filesystem::path lock_of(const std::filesystem::path& file) { return file.string() + ".lock"; }

Status check_state(const std::filesystem::path& file, const std::string& text,
                   const StateFile::IsFirst& is_first) {
  if (text.empty() || is_first(std::string_view(text).substr(0, text.find('\n')))) return {};
  return Error{ErrorCode::kConfiguration,
               printable(file.string()) + ": no state of this command; remove it, or name another"};
}

}  // namespace

Result<StateFile> StateFile::open(const std::filesystem::path& file, const IsFirst& is_first) {
  StateFile state;
  state.file_ = file;
  std::error_code problem;
  std::filesystem::create_directories(file.parent_path(), problem);
  // Before there is a lock beside what may be somebody's notes.
  if (std::ifstream before(file, std::ios::binary); std::filesystem::is_regular_file(file, problem)) {
    if (Status state_there = check_state(file, base::read_rest(before), is_first); !state_there)
      return state_there.error();
  }
  Result<UniqueFd> lock = take_lock(file);
  if (!lock) return lock.error();
  state.lock_ = std::move(*lock);
  state.fd_.reset(::open(file.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!state.fd_) return cannot_remember(file, "open");
  std::ifstream in(file, std::ios::binary);
  state.text_ = base::read_rest(in);
  if (in.bad()) return cannot_remember(file, "read");
  if (Status state_there = check_state(file, state.text_, is_first); !state_there) return state_there.error();
  const size_t whole = state.text_.rfind('\n') + 1;  // 0: there is none
  if (whole != state.text_.size()) {
    state.text_.resize(whole);
    if (::ftruncate(state.fd_.get(), static_cast<off_t>(whole)) != 0) return cannot_remember(file, "shorten");
  }
  state.bytes_ = state.text_.size();
  return state;
}

Result<UniqueFd> StateFile::take_lock(const std::filesystem::path& file) {
  const std::filesystem::path path = lock_of(file);
  UniqueFd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock) return cannot_remember(path, "open");
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
  if (errno != EWOULDBLOCK) return cannot_remember(path, "lock");
  return Error{ErrorCode::kConfiguration,
               printable(file.string()) +
                   ": another process of this command holds it; end that one, or name "
                   "another file with --state"};
}

Status StateFile::append(std::string_view lines, bool durable, const std::function<std::string()>& all) {
  const Stands stands = how_it_stands(file_, fd_);
  if (stands == Stands::kReplaced)
    return Error{
        ErrorCode::kConfiguration,
        printable(file_.string()) +
            ": another file has taken its place while this command used it; put the one before back, or "
            "start the command again if this one is to count"};
  if (how_it_stands(lock_of(file_), lock_) != Stands::kInItsPlace) {
    Result<UniqueFd> lock = take_lock(file_);
    if (!lock) return lock.error();
    lock_ = std::move(*lock);
  }
  if (stands == Stands::kNowhere) return replace(all());
  if (lines.empty()) return {};
  if (bytes_ + lines.size() > 2 * bytes_least_ + kSpareBytes) return replace(all());
  const bool written = base::write_all(fd_.get(), lines.data(), lines.size());
  if (!written || (durable && ::fdatasync(fd_.get()) != 0)) {
    const int reason = errno;
    (void)::ftruncate(fd_.get(), static_cast<off_t>(bytes_));  // no half of a line before the next one
    return Error{reason == ENOSPC || reason == EDQUOT ? ErrorCode::kNoSpace : ErrorCode::kStorage,
                 fmt::format("cannot write {}: {}; without it nobody would know what was done",
                             printable(file_.string()), std::strerror(reason))};
  }
  bytes_ += lines.size();
  return {};
}

Status StateFile::replace(const std::string& text) {
  if (Status status = identity::write_small_file(file_, text, 0600, identity::Replace::kYes); !status)
    return Error{ErrorCode::kStorage, status.error().message};
  fd_.reset(::open(file_.c_str(), O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW));
  if (!fd_) return Error{ErrorCode::kStorage, cannot_remember(file_, "open").message};
  bytes_ = bytes_least_ = text.size();
  return {};
}

Result<std::filesystem::path> usual_state_file(const std::string& command,
                                               const std::vector<std::string>& of) {
  const auto set = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  std::string joined;
  for (const std::string& word : of) joined += word + '\0';
  std::string digits;
  for (const char byte : identity::sha256_of(joined))
    digits += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  const std::string name = command + "-" + digits.substr(0, kNameDigits) + ".state";
  const std::string of_systemd = set("STATE_DIRECTORY");
  if (!of_systemd.empty()) return std::filesystem::path(of_systemd.substr(0, of_systemd.find(':'))) / name;
  if (const std::string of_user = set("XDG_STATE_HOME"); !of_user.empty())
    return std::filesystem::path(of_user) / "sluice" / name;
  if (const std::string home = set("HOME"); !home.empty())
    return std::filesystem::path(home) / ".local/state/sluice" / name;
  return Error{ErrorCode::kUsage,
               "neither HOME nor STATE_DIRECTORY says where this command may remember what it "
               "has done; name a file with --state"};
}

}  // namespace sluice::cli
