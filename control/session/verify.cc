// SPDX-License-Identifier: Apache-2.0
#include "control/session/verify.h"

#include <fmt/format.h>

#include <chrono>

#include "control/board/figures.h"
#include "control/exports/read_back.h"

namespace sluice::control {
namespace {

constexpr auto kReportInterval = std::chrono::milliseconds(500);

class Reader {
 public:
  using Report = std::function<bool(const api::VerifyProgress&)>;

  Reader(const VerifyFile& file, const Report& report) : file_(file), report_(report) {
    progress_.set_file(file.shown);
  }

  // False: the caller of verify() has had enough.
  bool run(const exports::Exports& exports) {
    std::string problem = file_.problem;
    if (problem.empty()) {
      auto opened = exports.open_source(file_.path);
      if (!opened) {
        problem = opened.error().message;
      } else {
        fd_ = std::move(opened->fd);
        problem = file_.whole ? check_whole(opened->size) : check_known();
      }
    }
    if (stopped_) return false;
    progress_.set_done(true);
    progress_.set_good(problem.empty());
    progress_.set_problem(problem);
    return report_(progress_);
  }

 private:
  std::string check_whole(uint64_t size) {
    progress_.set_bytes_total(file_.layout.size_bytes);
    if (size != file_.layout.size_bytes)
      return fmt::format("has {} bytes, the journal knows {}", size, file_.layout.size_bytes);
    uint64_t crc = 0;
    std::string problem = read(0, size, &crc);
    if (!problem.empty() || stopped_) return problem;
    progress_.set_digest(digest_hex(file_.layout.crc_kind, crc));
    if (crc == file_.digest) return "";
    return fmt::format("its digest is {}, the journal knows {}", progress_.digest(),
                       digest_hex(file_.layout.crc_kind, file_.digest));
  }

  // Blocks of the journal, or single extents of those that are not full.
  std::string check_known() {
    const recovery::ExtentLedger& ledger = file_.ledger;
    const recovery::ExtentMap& map = ledger.map();
    progress_.set_bytes_total(map.set_bytes());
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

  std::string read(uint64_t offset, uint64_t length, uint64_t* crc) {
    const auto note = [this](uint64_t bytes) { return progressed(bytes); };
    const Result<uint64_t> found = read_crc(fd_.get(), file_.layout.crc_kind, offset, length, note);
    if (!found) return found.error().message;
    *crc = *found;
    return "";
  }

  bool progressed(uint64_t bytes) {
    progress_.set_bytes_checked(progress_.bytes_checked() + bytes);
    const auto now = std::chrono::steady_clock::now();
    if (now - reported_ < kReportInterval) return true;
    reported_ = now;
    stopped_ = !report_(progress_);
    return !stopped_;
  }

  const VerifyFile& file_;
  const Report& report_;
  UniqueFd fd_;
  api::VerifyProgress progress_;
  std::chrono::steady_clock::time_point reported_;
  bool stopped_ = false;
};

}  // namespace

void verify(const exports::Exports& exports, const std::vector<VerifyFile>& files,
            const std::function<bool(const api::VerifyProgress&)>& report) {
  for (const VerifyFile& file : files) {
    if (!Reader(file, report).run(exports)) return;
  }
}

}  // namespace sluice::control
