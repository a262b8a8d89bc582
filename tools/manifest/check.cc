// SPDX-License-Identifier: Apache-2.0
#include "tools/manifest/check.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <unordered_set>
#include <utility>

#include "control/exports/beneath.h"
#include "control/hash/digest.h"
#include "dataplane/base/text.h"
#include "tools/manifest/in_order.h"
#include "tools/manifest/known_good.h"
#include "tools/manifest/survey.h"

namespace sluice::manifest {
namespace {

constexpr size_t kEntriesAhead = 1024;

struct Job {
  Entry entry;
  std::string name;  // beneath the directory; empty: refused
};
struct Checked {
  Entry entry;
  FileMark mark;
  Problem problem = Problem::kNone;
  std::string reason;
  bool known = false;
  bool stopped = false;
};

// "/a/b" of "/a/b/c" is "c". Nothing: it is not beneath.
std::optional<std::string> beneath_prefix(const std::string& name, std::string prefix) {
  while (prefix.size() > 1 && prefix.ends_with('/')) prefix.pop_back();
  if (prefix != "/") prefix += '/';
  if (!name.starts_with(prefix)) return std::nullopt;
  return name.substr(prefix.size());
}

// The lines of a stream, none longer than kLineBytesMax.
class Lines {
 public:
  explicit Lines(std::istream& in) : in_(in), buffer_(kLineBytesMax + 2, '\0') {}
  // Nothing: the end.
  std::optional<std::string_view> next() {
    in_.getline(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    size_t got = static_cast<size_t>(in_.gcount());
    if (got == 0) return std::nullopt;
    if (!in_.eof() && !in_.fail()) --got;  // of the line feed
    return std::string_view(buffer_.data(), got);
  }

 private:
  std::istream& in_;
  std::string buffer_;
};

class Checker {
 public:
  Checker(const CheckOptions& options, std::istream& list, Pace& pace, const OnFinding& on_finding)
      : options_(options),
        list_(list),
        lines_(list),
        reader_(options.list_name, options.kind),
        pace_(pace),
        on_finding_(on_finding) {}

  Result<Counts> run() {
    Result<Place> place = open_place(options_.path);
    if (!place) return place.error();
    place_ = std::move(*place);
    if (Status status = begin_resume(); !status) return status.error();
    InOrder<Job, Checked> work(options_.jobs, kEntriesAhead,
                               {.next = [this] { return next(); },
                                .work = [this](Job&& job) { return check(std::move(job)); },
                                .take = [this](Checked&& checked) { return take(checked); }});
    work.run();
    if (failed_) return *failed_;
    counts_.interrupted = pace_.stop.load();
    if (counts_.interrupted) return counts_;
    if (entries_ == 0) return nothing_to_check();
    if (options_.extra) find_extra();
    if (known_ && verdict_of(counts_) == ErrorCode::kOk && !pace_.stop.load()) known_->remove();
    counts_.interrupted = pace_.stop.load();
    return counts_;
  }

 private:
  Status begin_resume() {
    if (options_.resume.empty()) return {};
    auto digest = begin_digest(Kind::kSha256);
    if (!digest) return digest.error();
    std::vector<char> block(1U << 16);
    while (list_.read(block.data(), static_cast<std::streamsize>(block.size())) || list_.gcount() > 0)
      (*digest)->add(block.data(), static_cast<size_t>(list_.gcount()));
    list_.clear();
    list_.seekg(0);
    if (!list_) return Error{ErrorCode::kUsage, "--resume: the list cannot be read twice; give it as a file"};
    const std::string where = place_.directory_path + (place_.name.empty() ? "" : "/" + place_.name);
    Result<KnownGood> known = KnownGood::open(options_.resume, (*digest)->hex(), where);
    if (!known) return known.error();
    known_.emplace(std::move(*known));
    return {};
  }

  Error nothing_to_check() const {
    if (place_.name.empty())
      return {ErrorCode::kUsage, base::printable(options_.list_name) + ": has no entry; is this the list?"};
    return {ErrorCode::kUsage, base::printable(options_.list_name) + ": does not name " +
                                   base::printable(place_.name) + "; give the directory, or another list"};
  }

  std::optional<Job> next() {
    while (!failed_ && !pace_.stop.load(std::memory_order_relaxed)) {
      std::optional<Entry> entry = next_entry();
      if (!entry) return std::nullopt;
      Job job{.entry = std::move(*entry), .name = {}};
      job.name = local_name(job.entry.name);
      if (!place_.name.empty()) {
        if (exports::last_component(job.entry.name) != place_.name) continue;
        job.name = place_.name;
      }
      ++entries_;
      if (options_.extra) remember(job.name);
      return job;
    }
    return std::nullopt;
  }
  // Lines of one name that follow one another, such as several digests with --tag, are one: the file is read
  // once.
  std::optional<Entry> next_entry() {
    std::optional<Entry> entry = std::exchange(ahead_, std::nullopt);
    if (!entry) entry = next_line();
    while (entry && !failed_) {
      ahead_ = next_line();
      if (!ahead_ || ahead_->name != entry->name || entry->values.size() >= kKinds.size()) break;
      entry->values.insert(entry->values.end(), ahead_->values.begin(), ahead_->values.end());
      ahead_.reset();
    }
    return entry;
  }
  std::optional<Entry> next_line() {
    for (;;) {
      const std::optional<std::string_view> text = lines_.next();
      if (!text) {
        if (list_.bad()) fail({ErrorCode::kUsage, base::printable(options_.list_name) + ": cannot be read"});
        return std::nullopt;
      }
      Result<std::optional<Entry>> entry = reader_.line(*text);
      if (!entry) {
        fail(entry.error());
        return std::nullopt;
      }
      if (*entry) return std::move(**entry);
    }
  }
  void fail(const Error& error) {
    if (!failed_) failed_ = error;
  }
  // Without what stands before the directory; empty: it is not beneath.
  std::string local_name(const std::string& name) const {
    if (!options_.strip_prefix.empty()) {
      if (const auto rest = beneath_prefix(name, options_.strip_prefix)) return *rest;
    }
    if (!name.starts_with('/')) return name;
    return beneath_prefix(name, place_.directory_path).value_or("");
  }
  void remember(const std::string& name) {
    if (const auto parts = exports::components(name)) listed_.insert(exports::join(*parts, 0, parts->size()));
  }

  // By several threads at once.
  Checked check(Job&& job) {
    Checked result;
    result.entry = std::move(job.entry);
    if (job.name.empty()) {
      result.problem = Problem::kRefused;
      result.reason = "leads out of the directory; --strip-prefix DIR takes the beginning of names away";
      return result;
    }
    const OpenedFile file = open_file(place_.directory.get(), job.name);
    result.mark = file.mark;
    result.problem = file.problem;
    result.reason = file.reason;
    if (file.problem != Problem::kNone) return result;
    const Entry& entry = result.entry;
    if (entry.size_bytes && *entry.size_bytes != file.mark.size_bytes) {
      result.problem = Problem::kDiffers;
      result.reason = "has " + std::to_string(file.mark.size_bytes) + " bytes, and by the list " +
                      std::to_string(*entry.size_bytes);
      return result;
    }
    result.known = known_ && known_->has(entry.line, file.mark);
    if (!result.known) compare(file, &result);
    pace_.files.fetch_add(1, std::memory_order_relaxed);
    return result;
  }
  void compare(const OpenedFile& file, Checked* result) {
    std::vector<Kind> kinds;
    for (const Value& value : result->entry.values) kinds.push_back(value.kind);
    const Hashed hashed = hash_file(file, kinds, pace_);
    result->stopped = hashed.stopped;
    result->problem = hashed.problem;
    result->reason = hashed.reason;
    if (hashed.stopped || hashed.problem != Problem::kNone) return;
    for (size_t i = 0; i < kinds.size(); ++i) {
      if (hashed.hex[i] == result->entry.values[i].hex) continue;
      result->problem = Problem::kDiffers;
      result->reason = std::string(name_of(kinds[i])) + " is " + hashed.hex[i] + ", and by the list " +
                       result->entry.values[i].hex;
      return;
    }
  }

  // False: nothing more is of use.
  bool take(const Checked& checked) {
    if (checked.stopped) return false;
    if (checked.problem == Problem::kNone) {
      ++(checked.known ? counts_.good_before : counts_.good);
      if (!known_ || checked.known) return true;
      const Status status = known_->add(checked.entry.line, checked.mark);
      if (!status) fail(status.error());
      return static_cast<bool>(status);
    }
    if (checked.problem == Problem::kMissing && options_.ignore_missing) {
      ++counts_.ignored;
      return true;
    }
    found({checked.problem, checked.entry.name, checked.entry.line, checked.reason});
    return true;
  }
  void found(const Finding& finding) {
    switch (finding.problem) {
      case Problem::kDiffers:
        ++counts_.differs;
        break;
      case Problem::kMissing:
        ++counts_.missing;
        break;
      case Problem::kRefused:
        ++counts_.refused;
        break;
      case Problem::kExtra:
        ++counts_.extra;
        break;
      default:
        ++counts_.unreadable;
    }
    on_finding_(finding);
  }

  // A bag's own files beside data/ stand in other lists.
  void find_extra() {
    const std::string start = reader_.format() == Format::kBagit ? "data" : "";
    UniqueFd top =
        exports::open_beneath(place_.directory.get(), start.empty() ? "." : start, O_RDONLY | O_DIRECTORY);
    const auto unreadable = [this](const std::string& name, const std::string& reason) {
      found({Problem::kUnreadable, name, 0, reason});
    };
    if (!top) return unreadable(start.empty() ? "." : start, std::strerror(errno));
    std::vector<FileId> without;
    if (options_.list_file) without.emplace_back(options_.list_file->first, options_.list_file->second);
    if (known_) {
      if (const auto id = known_->id()) without.push_back(*id);
    }
    Survey survey(std::move(top), start, without, unreadable);
    for (auto name = survey.next(); name && !pace_.stop.load(); name = survey.next()) {
      if (!listed_.contains(*name)) found({Problem::kExtra, *name, 0, "is not in the list"});
    }
  }

  const CheckOptions& options_;
  std::istream& list_;
  Lines lines_;
  ListReader reader_;
  Pace& pace_;
  const OnFinding& on_finding_;
  Place place_;
  std::optional<KnownGood> known_;
  std::unordered_set<std::string> listed_;  // with --extra alone
  std::optional<Entry> ahead_;              // read already
  std::optional<Error> failed_;
  uint64_t entries_ = 0;
  Counts counts_;
};

}  // namespace

Result<Counts> check_list(const CheckOptions& options, std::istream& list, Pace& pace,
                          const OnFinding& on_finding) {
  return Checker(options, list, pace, on_finding).run();
}

ErrorCode verdict_of(const Counts& counts) {
  if (counts.differs + counts.missing + counts.refused + counts.extra > 0) return ErrorCode::kIntegrity;
  // A wrong directory has no file of the list.
  if (counts.ignored > 0 && counts.good + counts.good_before == 0) return ErrorCode::kIntegrity;
  return counts.unreadable > 0 ? ErrorCode::kSourceUnreadable : ErrorCode::kOk;
}

Result<Place> open_place(const std::filesystem::path& path) {
  std::error_code problem;
  const std::filesystem::path whole = std::filesystem::canonical(path, problem);
  if (problem)
    return Error{ErrorCode::kSourceUnreadable,
                 base::printable(path.string()) + ": " + problem.message() + "; check the name"};
  Place place;
  const bool is_directory = std::filesystem::is_directory(whole, problem);
  place.directory_path = (is_directory ? whole : whole.parent_path()).string();
  if (!is_directory) place.name = whole.filename().string();
  place.directory.reset(::open(place.directory_path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (place.directory) return place;
  return Error{ErrorCode::kSourceUnreadable, base::printable(place.directory_path) + ": cannot be opened: " +
                                                 std::strerror(errno) + "; check its permissions"};
}

}  // namespace sluice::manifest
