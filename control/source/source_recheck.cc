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

bool SourceRecheck::add(ObjectId object, const recovery::Layout& layout, int64_t ctime_ns) {
  const auto same = [object](const Again& each) { return each.object == object; };
  if (std::any_of(objects_.begin(), objects_.end(), same)) return false;
  objects_.push_back(
      {.object = object, .ctime_ns = ctime_ns, .ledger = recovery::ExtentLedger(layout), .next = {}});
  return true;
}

std::optional<ReadExtents> SourceRecheck::next() {
  if (reading_ || objects_.empty()) return std::nullopt;
  reading_ = true;
  const Again& again = objects_.front();
  return read_extents(again.ledger, again.object, recovery::ExtentLedger::first_of(again.next),
                      again.ledger.end_of(again.next));
}

SourceRecheck::Found SourceRecheck::read(const std::vector<uint64_t>& crcs,
                                         const recovery::ExtentLedger& sent) {
  reading_ = false;
  ++steps_;
  Again& again = objects_.front();
  const recovery::BlockId block = again.next++;
  ExtentId extent = recovery::ExtentLedger::first_of(block);
  for (const uint64_t crc : crcs) (void)again.ledger.add(extent++, crc);
  // At once: a file that changed need not be read to its end.
  if (again.ledger.block_digest(block) != sent.block_digest(block)) return Found::kChanged;
  return again.ledger.complete() ? Found::kSame : Found::kSameSoFar;
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
