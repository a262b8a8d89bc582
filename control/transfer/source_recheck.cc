// SPDX-License-Identifier: Apache-2.0
#include "control/transfer/source_recheck.h"

#include <algorithm>

namespace sluice::transfer {

bool SourceRecheck::add(ObjectId object, const recovery::Layout& layout, int64_t ctime_ns) {
  const auto same = [object](const Again& each) { return each.object == object; };
  if (std::any_of(objects_.begin(), objects_.end(), same)) return false;
  objects_.push_back(
      {.object = object, .ctime_ns = ctime_ns, .ledger = recovery::ExtentLedger(layout), .next = {}});
  return true;
}

std::optional<ReadExtent> SourceRecheck::next() {
  if (reading_ || objects_.empty()) return std::nullopt;
  reading_ = true;
  const Again& again = objects_.front();
  return ReadExtent{
      .object = again.object, .extent = again.next, .range = again.ledger.map().range_of(again.next)};
}

SourceRecheck::Found SourceRecheck::read(uint64_t crc, const recovery::ExtentLedger& sent) {
  reading_ = false;
  ++steps_;
  Again& again = objects_.front();
  (void)again.ledger.add(again.next, crc);
  const recovery::BlockId block = recovery::ExtentLedger::block_of(again.next);
  ++again.next;
  // A full block is compared at once: a file that changed need not be read to its end.
  const std::optional<uint64_t> digest = again.ledger.block_digest(block);
  if (digest && digest != sent.block_digest(block)) return Found::kChanged;
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
