// SPDX-License-Identifier: Apache-2.0
#include "control/source/source_recheck.h"

#include <algorithm>

namespace sluice::transfer {
namespace {

constexpr uint64_t kZerosBytes = 1ULL << 40;

}  // namespace

bool SourceRecheck::add(ObjectId object, const recovery::ExtentLedger& sent, int64_t ctime_ns) {
  const auto same = [object](const Again& each) { return each.object == object; };
  if (std::any_of(objects_.begin(), objects_.end(), same)) return false;
  objects_.push_back(
      {.object = object, .ctime_ns = ctime_ns, .sent = sent, .next = sent.map().next_set(ExtentId(0))});
  return true;
}

std::optional<ReadExtents> SourceRecheck::next() {
  if (reading_ || objects_.empty()) return std::nullopt;
  reading_ = true;
  const Again& again = objects_.front();
  piece_ = again.sent.piece_at(again.next, kZerosBytes);
  return ReadExtents{.object = again.object, .first = again.next, .ranges = {piece_.range}};
}

SourceRecheck::Found SourceRecheck::read(uint64_t crc) {
  reading_ = false;
  ++steps_;
  if (crc != piece_.crc) return Found::kChanged;  // at once: it need not be read to its end
  Again& again = objects_.front();
  const recovery::ExtentMap& map = again.sent.map();
  const uint64_t end = piece_.range.end();
  again.next = end == map.range_of(ExtentId(map.end_id().value() - 1)).end()
                   ? map.end_id()
                   : map.next_set(map.extent_at(end));
  return again.next == map.end_id() ? Found::kSame : Found::kSameSoFar;
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
