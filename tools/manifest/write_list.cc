// SPDX-License-Identifier: Apache-2.0
#include "tools/manifest/write_list.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <ostream>
#include <utility>

#include "control/exports/beneath.h"
#include "control/hash/digest.h"
#include "dataplane/base/text.h"
#include "dataplane/base/write_all.h"
#include "tools/manifest/in_order.h"
#include "tools/manifest/survey.h"

namespace sluice::manifest {
namespace {

constexpr size_t kFilesAhead = 1024;
constexpr size_t kFlushBytes = 1U << 18;
constexpr mode_t kListMode = 0644;

// A file beside `list`, which takes its name at the end, or goes; or what is kept for `out` until then.
class NewFile {
 public:
  NewFile(std::filesystem::path list, std::ostream* out) : list_(std::move(list)), out_(out) {}
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile() {
    if (fd_) ::unlinkat(folder_.get(), name_.c_str(), 0);
  }

  // That there may be such a file: nothing is made.
  Status look(bool replace) {
    if (out_ != nullptr) return {};
    const std::filesystem::path folder = folder_path();
    if (!exports::valid_file_name(list_.filename().string()))
      return Error{ErrorCode::kUsage, base::printable(list_.string()) + ": no name of a file"};
    folder_.reset(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!folder_) return cannot("cannot be made");
    if (::faccessat(folder_.get(), ".", W_OK | X_OK, AT_EACCESS) != 0) return cannot("cannot be made");
    struct stat info {};
    if (::fstatat(folder_.get(), list_.filename().c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return {};
    if (S_ISDIR(info.st_mode))
      return Error{ErrorCode::kUsage, base::printable(list_.string()) + ": is a directory; name a file"};
    return replace ? Status() : exists();
  }
  Status open(bool replace) {
    if (Status status = look(replace); !status || out_ != nullptr) return status;
    std::string name = (folder_path() / ("." + list_.filename().string() + ".XXXXXX")).string();
    fd_.reset(::mkostemp(name.data(), O_CLOEXEC));
    if (!fd_) return cannot("cannot be made");
    name_ = std::filesystem::path(name).filename().string();
    const mode_t mask = ::umask(0);
    ::umask(mask);
    if (::fchmod(fd_.get(), kListMode & ~mask) != 0) return cannot("cannot be made");
    return {};
  }
  int fd() const { return fd_.get(); }
  Status add(const std::string& text) {
    waiting_ += text;
    return out_ != nullptr || waiting_.size() < kFlushBytes ? Status() : flush();
  }
  Status finish(bool replace) {
    if (out_ != nullptr) {
      *out_ << waiting_ << std::flush;
      return {};
    }
    if (Status status = flush(); !status) return status;
    if (::fsync(fd_.get()) != 0) return cannot("cannot be written");
    const std::string name = list_.filename().string();
    if (!exports::rename_between(folder_.get(), name_, folder_.get(), name, replace))
      return errno == EEXIST ? exists() : cannot("cannot get its name");
    fd_.reset();
    if (::fsync(folder_.get()) != 0) return cannot("its directory cannot be synced");
    return {};
  }

 private:
  std::filesystem::path folder_path() const { return list_.has_parent_path() ? list_.parent_path() : "."; }
  Status flush() {
    if (!base::write_all(fd_.get(), waiting_.data(), waiting_.size())) return cannot("cannot be written");
    waiting_.clear();
    return {};
  }
  Error exists() const {
    return {ErrorCode::kDestinationExists,
            base::printable(list_.string()) + ": is there already; name another, or give --overwrite"};
  }
  Error cannot(const char* what) const {
    return {errno == ENOSPC || errno == EDQUOT ? ErrorCode::kNoSpace : ErrorCode::kStorage,
            base::printable(list_.string()) + ": " + what + ": " + std::strerror(errno) +
                "; check its directory and disk"};
  }

  const std::filesystem::path list_;
  std::ostream* const out_;
  UniqueFd folder_;
  UniqueFd fd_;
  std::string name_;
  std::string waiting_;
};

struct Measured {
  Entry entry;
  Problem problem = Problem::kNone;
  std::string reason;
  bool stopped = false;
};

class ListWriter {
 public:
  ListWriter(const WriteOptions& options, Pace& pace, const OnFinding& on_finding)
      : options_(options), pace_(pace), on_finding_(on_finding), file_(options.list, options.out) {}

  Result<Written> run() {
    if (Status status = check_format(options_.format, options_.kinds); !status) return status.error();
    for (const Kind kind : options_.kinds) {
      if (const auto digest = begin_digest(kind); !digest) return digest.error();
    }
    Result<Place> place = open_place(options_.path);
    if (!place) return place.error();
    place_ = std::move(*place);
    if (Status status = file_.open(options_.replace); !status) return status.error();
    if (Status status = begin(); !status) return status.error();
    InOrder<std::string, Measured> work(options_.jobs, kFilesAhead,
                                        {.next = [this] { return next(); },
                                         .work = [this](std::string&& name) { return measure(name); },
                                         .take = [this](Measured&& one) { return take(one); }});
    work.run();
    if (failed_) return *failed_;
    written_.interrupted = pace_.stop.load();
    if (survey_) written_.others = survey_->others();
    if (written_.interrupted || written_.unreadable > 0) return written_;
    if (Status status = file_.finish(options_.replace); !status) return status.error();
    return written_;
  }

 private:
  Status begin() {
    if (Status status = file_.add(head_of(options_.format, options_.kinds)); !status) return status;
    const bool bag = options_.format == Format::kBagit;
    if (!place_.name.empty()) {
      if (bag) return no_bag();
      one_ = place_.name;
      return {};
    }
    UniqueFd top = exports::open_beneath(place_.directory.get(), bag ? "data" : ".", O_RDONLY | O_DIRECTORY);
    if (!top) {
      if (bag) return no_bag();
      return exports::lookup_error(base::printable(place_.directory_path), errno,
                                   ErrorCode::kSourceUnreadable);
    }
    std::vector<FileId> without;
    if (const auto id = id_of(file_.fd())) without.push_back(*id);
    const UniqueFd old(options_.out != nullptr ? -1 : ::open(options_.list.c_str(), O_PATH | O_CLOEXEC));
    if (const auto id = old ? id_of(old.get()) : std::nullopt) without.push_back(*id);
    survey_.emplace(std::move(top), bag ? "data" : "", std::move(without),
                    [this](const std::string& name, const std::string& reason) { unreadable(name, reason); });
    return {};
  }
  Error no_bag() const {
    return {ErrorCode::kUsage,
            base::printable(options_.path.string()) +
                ": has no directory 'data', so it is no bag; give the bag's own directory"};
  }
  void unreadable(const std::string& name, const std::string& reason) {
    ++written_.unreadable;
    on_finding_({Problem::kUnreadable, name, 0, reason});
  }

  std::optional<std::string> next() {
    if (failed_ || pace_.stop.load(std::memory_order_relaxed)) return std::nullopt;
    if (survey_) return survey_->next();
    return std::exchange(one_, std::nullopt);
  }

  // By several threads at once.
  Measured measure(const std::string& name) {
    Measured result;
    result.entry.name = name;
    const OpenedFile file = open_file(place_.directory.get(), name);
    result.problem = file.problem;
    result.reason = file.reason;
    if (file.problem != Problem::kNone) return result;
    Hashed hashed = hash_file(file, options_.kinds, pace_);
    result.stopped = hashed.stopped;
    result.problem = hashed.problem;
    result.reason = hashed.reason;
    if (hashed.stopped || hashed.problem != Problem::kNone) return result;
    result.entry.size_bytes = file.mark.size_bytes;
    for (size_t i = 0; i < options_.kinds.size(); ++i)
      result.entry.values.push_back({options_.kinds[i], std::move(hashed.hex[i])});
    pace_.files.fetch_add(1, std::memory_order_relaxed);
    return result;
  }

  bool take(const Measured& one) {
    if (one.stopped || failed_) return false;
    if (one.problem != Problem::kNone) {
      unreadable(one.entry.name, one.reason);
      return true;
    }
    const Result<std::string> lines = lines_of(options_.format, options_.list.native(), one.entry);
    const Status status = lines ? file_.add(*lines) : Status(lines.error());
    if (!status) failed_ = status.error();
    written_.files += status ? 1 : 0;
    return static_cast<bool>(status);
  }

  const WriteOptions& options_;
  Pace& pace_;
  const OnFinding& on_finding_;
  NewFile file_;
  Place place_;
  std::optional<Survey> survey_;
  std::optional<std::string> one_;
  std::optional<Error> failed_;
  Written written_;
};

}  // namespace

Status check_place(const WriteOptions& options) {
  return NewFile(options.list, options.out).look(options.replace);
}

Status write_entries(const WriteOptions& options, std::vector<Entry> entries) {
  if (Status status = check_format(options.format, options.kinds); !status) return status;
  std::ranges::sort(entries, {}, &Entry::name);
  NewFile file(options.list, options.out);
  if (Status status = file.open(options.replace); !status) return status;
  if (Status status = file.add(head_of(options.format, options.kinds)); !status) return status;
  for (const Entry& entry : entries) {
    const Result<std::string> lines = lines_of(options.format, options.list.native(), entry);
    if (!lines) return lines.error();
    if (Status status = file.add(*lines); !status) return status;
  }
  return file.finish(options.replace);
}

Result<Written> write_list(const WriteOptions& options, Pace& pace, const OnFinding& on_finding) {
  return ListWriter(options, pace, on_finding).run();
}

}  // namespace sluice::manifest
