// SPDX-License-Identifier: Apache-2.0
#include "control/node/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "control/board/figures.h"
#include "control/exports/read_back.h"
#include "control/hash/several.h"
#include "dataplane/base/check.h"
#include "dataplane/base/counted.h"
#include "dataplane/base/text.h"

namespace sluice::node {
namespace {

constexpr auto kReportInterval = std::chrono::milliseconds(500);

class Reader {
 public:
  Reader(const VerifyFile& file, uint64_t names_unchecked, const VerifyReport& report)
      : file_(file), report_(report) {
    progress_.file = file.shown;
    progress_.names_unchecked = names_unchecked;
  }

  // False: the caller of verify() has had enough.
  bool run(const exports::Exports& exports) {
    std::string problem = file_.problem;
    if (problem.empty()) {
      auto opened = file_.unfinished ? exports.open_unfinished(file_.path) : exports.open_source(file_.path);
      if (!opened) {
        problem = opened.error().message;
      } else {
        fd_ = std::move(opened->fd);
        problem = file_.whole ? check_whole(opened->size) : check_known();
      }
    }
    if (stopped_) return false;
    progress_.done = true;
    progress_.good = problem.empty();
    progress_.problem = problem;
    return report_(progress_);
  }

 private:
  std::string check_whole(uint64_t size) {
    progress_.bytes_total = file_.layout.size_bytes;
    if (size != file_.layout.size_bytes)
      return fmt::format("has {} bytes, the journal knows {}", size, file_.layout.size_bytes);
    uint64_t crc = 0;
    digests::Mask kinds = 0;
    for (const digests::Value& value : file_.digests) kinds |= digests::bit_of(value.kind);
    Result<digests::Several> several = digests::Several::begin(kinds);
    if (!several) return several.error().message;
    std::string problem = read(0, size, &crc, &*several);
    if (!problem.empty() || stopped_) return problem;
    progress_.digest = board::digest_hex(file_.layout.crc_kind, crc);
    for (const digests::Value& value : several->values()) {
      const auto known = std::ranges::find(file_.digests, value.kind, &digests::Value::kind);
      if (known->hex != value.hex)
        return fmt::format("its {} is {}, the journal knows {}", name_of(value.kind), value.hex, known->hex);
    }
    if (!file_.has_crc || crc == file_.digest) return "";
    return fmt::format("its digest is {}, the journal knows {}", progress_.digest,
                       board::digest_hex(file_.layout.crc_kind, file_.digest));
  }

  // Blocks of the journal, or single extents of those that are not full.
  std::string check_known() {
    const recovery::ExtentLedger& ledger = file_.ledger;
    const recovery::ExtentMap& map = ledger.map();
    progress_.bytes_total = map.set_bytes();
    for (recovery::BlockId block; block < ledger.end_id() && !stopped_; ++block) {
      if (const auto digest = ledger.block_digest(block)) {
        std::string problem = compare(ledger.range_of(block), *digest);
        if (!problem.empty()) return problem;
        continue;
      }
      for (ExtentId extent = ledger.first_of(block); extent < ledger.end_of(block) && !stopped_; ++extent) {
        const auto crc = ledger.extent_crc(extent);
        std::string problem = crc ? compare(map.range_of(extent), *crc) : std::string();
        if (!problem.empty()) return problem;
      }
    }
    return "";
  }

  std::string compare(recovery::Range range, uint64_t expected) {
    uint64_t crc = 0;
    std::string problem = read(range.offset, range.length, &crc);
    if (!problem.empty() || stopped_ || crc == expected) return problem;
    return fmt::format("bytes {} to {} are not those that the journal knows", range.offset, range.end());
  }

  std::string read(uint64_t offset, uint64_t length, uint64_t* crc, digests::Several* also = nullptr) {
    const auto note = [this](uint64_t bytes) { return progressed(bytes); };
    const Result<uint64_t> found =
        exports::read_crc(fd_.get(), file_.layout.crc_kind, offset, length, note, also);
    if (!found) return found.error().message;
    *crc = *found;
    return "";
  }

  bool progressed(uint64_t bytes) {
    progress_.bytes_checked += bytes;
    const auto now = std::chrono::steady_clock::now();
    if (now - reported_ < kReportInterval) return true;
    reported_ = now;
    stopped_ = !report_(progress_);
    return !stopped_;
  }

  const VerifyFile& file_;
  const VerifyReport& report_;
  UniqueFd fd_;
  VerifyProgress progress_;
  std::chrono::steady_clock::time_point reported_;
  bool stopped_ = false;
};

}  // namespace

namespace {

VerifyFile file_to_verify(const transfer::Saved& saved, ObjectId object, const catalog::File& known) {
  const transfer::Record& record = saved.record;
  DCHECK(transfer::agreement_of(record) != nullptr, "what can be verified was agreed upon");
  const transfer::Agreement& agreement = *transfer::agreement_of(record);
  VerifyFile file{.shown = known.shown, .path = known.path, .problem = {}};
  file.layout = {
      .size_bytes = known.size_bytes, .extent_bytes = agreement.extent_bytes, .crc_kind = agreement.crc_kind};
  file.whole = known.state == catalog::FileState::kDone;
  file.digest = known.digest;
  if (known.whole_digest) {
    file.layout.size_bytes = known.part.whole_bytes;
    file.digest = *known.whole_digest;
  } else if (selection::is_part(known.part)) {
    file.problem = "only a part of it was sent: verify the session that finished it";
  }
  if (file.whole && !known.digests.found.empty()) file.digests = known.digests.found.front().values;
  if (!file.whole) {
    file.ledger = recovery::ExtentLedger(file.layout);
    for (const recovery::Block& block : saved.blocks[object]) {
      if (const Status status = file.ledger.restore(block); !status) file.problem = status.error().message;
    }
    file.unfinished = record.role == transfer::Role::kDestination;
    if (transfer::has_ended(record.state)) file.problem = "was not finished: nothing of it is kept";
  }
  return file;
}

// Those of which digests were asked for, at the destination. How many.
uint64_t add_names_of_pack(const transfer::Saved& saved, const catalog::File& pack,
                           std::vector<VerifyFile>* files) {
  if (saved.record.role != transfer::Role::kDestination || pack.state != catalog::FileState::kDone) return 0;
  uint64_t added = 0;
  for (const digests::Named& name : pack.digests.found) {
    if (name.values.empty()) continue;
    const std::string path = pack.path + "/" + name.path;
    VerifyFile file{.shown = base::printable(path), .path = path, .problem = {}};
    file.layout = {.size_bytes = name.size_bytes,
                   .extent_bytes = transfer::agreement_of(saved.record)->extent_bytes,
                   .crc_kind = wire::CrcKind::kCrc64Ecma};
    file.whole = true;
    file.has_crc = false;
    file.digests = name.values;
    files->push_back(std::move(file));
    ++added;
  }
  return added;
}

}  // namespace

Result<ToVerify> files_to_verify(const transfer::Saved& saved) {
  const transfer::Record& record = saved.record;
  const transfer::Agreement* const agreement = transfer::agreement_of(record);
  if (agreement == nullptr || agreement->extent_bytes == 0 || saved.files.empty()) {
    return Error{
        ErrorCode::kUsage,
        fmt::format("session {}: the journal knows no file of it that could be verified", record.id)};
  }
  ToVerify all;
  uint64_t not_arrived = 0;
  ObjectId object;
  for (const catalog::File& known : saved.files) {
    const ObjectId its = object++;
    // The source is whole, and says nothing of the other node's copy.
    const bool no_copy = record.role == transfer::Role::kSource && transfer::has_ended(record.state) &&
                         known.state != catalog::FileState::kDone;
    if (no_copy && !known.packed()) {
      ++not_arrived;
    } else if (known.packed() || known.failed()) {
      all.names_unchecked += known.names() - add_names_of_pack(saved, known, &all.files);
    } else if (!known.path.empty()) {
      all.files.push_back(file_to_verify(saved, its, known));
    }
  }
  all.names_unchecked += not_arrived;
  if (!all.files.empty()) return all;
  if (not_arrived != 0)
    return Error{ErrorCode::kUsage,
                 fmt::format("session {} has ended, and nothing of it that could be compared has arrived: "
                             "'sluice session show' says why",
                             record.id)};
  if (all.names_unchecked != 0)
    return Error{ErrorCode::kUsage,
                 fmt::format("session {}: the journal keeps no digest of its {}: small files travel in "
                             "packs; compare both trees with sluice send --sync --checksum --dry-run",
                             record.id, base::counted(all.names_unchecked, "name"))};
  return Error{
      ErrorCode::kUsage,
      fmt::format("session {} has no file at this node, only bytes that were generated or discarded: "
                  "there is nothing to verify",
                  record.id)};
}

namespace {

// What the thread that reads a file tells the one that reports, which may be gone.
class Told {
 public:
  explicit Told(VerifyProgress first) : latest_(std::move(first)) {}

  // By the reader. False: nobody listens.
  bool tell(const VerifyProgress& progress) {
    const std::lock_guard lock(mutex_);
    DCHECK(!latest_.done, "nothing comes after the last word on a file");
    latest_ = progress;
    if (progress.done) changed_.notify_one();
    return !left_;
  }
  // The pool lets go of the call, whether it has run or not.
  void end() {
    const std::lock_guard lock(mutex_);
    if (!latest_.done) latest_.problem = "was not read to its end: sluice-control ends";
    latest_.done = true;
    changed_.notify_one();
  }
  // By the other, until the file is done. False: it has had enough.
  bool pass_on(const VerifyReport& report) {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait_for(lock, kReportInterval, [this] { return latest_.done; });
      const VerifyProgress progress = latest_;
      lock.unlock();
      const bool goes_on = report(progress);
      lock.lock();
      left_ = !goes_on;
      if (!goes_on || progress.done) return goes_on;
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  VerifyProgress latest_;
  bool left_ = false;
};

}  // namespace

void verify(const std::shared_ptr<const exports::Exports>& exports,
            const std::shared_ptr<const ToVerify>& what, const VerifyPlace& place,
            const VerifyReport& report) {
  for (const VerifyFile& file : what->files) {
    const auto told = std::make_shared<Told>(VerifyProgress{
        .file = file.shown, .bytes_total = file.layout.size_bytes, .names_unchecked = what->names_unchecked});
    std::shared_ptr<void> call(nullptr, [told](void*) { told->end(); });
    auto work = [exports, what, &file = file, told, call = std::move(call)]() mutable {
      const VerifyReport tell = [&told](const VerifyProgress& progress) { return told->tell(progress); };
      (void)Reader(file, what->names_unchecked, tell).run(*exports);
      call.reset();
      return 0;
    };
    place(file.path).run(std::move(work), [](int) {});
    if (!told->pass_on(report)) return;
  }
}

}  // namespace sluice::node
