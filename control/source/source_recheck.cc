// SPDX-License-Identifier: Apache-2.0
#include "control/source/source_recheck.h"

#include <algorithm>

namespace sluice::transfer {

ReadExtents read_extents(const recovery::ExtentLedger& ledger, ObjectId object, ExtentId first,
                         ExtentId end) {
  ReadExtents read{.object = object, .first = first, .ranges = {}};
  for (ExtentId each = first; each < end; ++each) read.ranges.push_back(ledger.map().range_of(each));
  return read;
}

bool SourceRecheck::add(ObjectId object, const recovery::Layout& layout, const recovery::ExtentLedger& sent,
                        int64_t ctime_ns) {
  const auto same = [object](const Again& each) { return each.object == object; };
  if (std::any_of(objects_.begin(), objects_.end(), same)) return false;
  objects_.push_back({.object = object,
                      .ctime_ns = ctime_ns,
                      .sent = sent,
                      .found = recovery::ExtentLedger(layout),
                      .next = sent.map().next_set(ExtentId(0))});
  return true;
}

std::optional<ReadExtents> SourceRecheck::next() {
  if (reading_ || objects_.empty()) return std::nullopt;
  reading_ = true;
  const Again& again = objects_.front();
  const ExtentId block_end = again.sent.end_of(recovery::ExtentLedger::block_of(again.next));
  return read_extents(again.sent, again.object, again.next,
                      again.sent.map().next_clear({again.next, block_end}));
}

SourceRecheck::Found SourceRecheck::read(const std::vector<uint64_t>& crcs) {
  reading_ = false;
  ++steps_;
  Again& again = objects_.front();
  const recovery::BlockId block = recovery::ExtentLedger::block_of(again.next);
  for (const uint64_t crc : crcs) {
    const std::optional<uint64_t> known = again.sent.extent_crc(again.next);
    if (known && *known != crc) return Found::kChanged;  // at once: it need not be read to its end
    (void)again.found.add(again.next++, crc);
  }
  const std::optional<uint64_t> whole = again.sent.block_digest(block);
  if (whole && whole != again.found.block_digest(block)) return Found::kChanged;
  if (again.next < again.sent.map().end_id()) again.next = again.sent.map().next_set(again.next);
  return again.next == again.sent.map().end_id() ? Found::kSame : Found::kSameSoFar;
}

void SourceRecheck::drop(ObjectId object) {
  std::erase_if(objects_, [object](const Again& each) { return each.object == object; });
}

int64_t SourceRecheck::take() {
  const int64_t ctime_ns = objects_.front().ctime_ns;
  objects_.pop_front();
  return ctime_ns;
}

}  // namespace sluice::transfer
