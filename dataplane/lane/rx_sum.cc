// Sums of extents for digests of their object (dataplane/sums), computed of the bytes that are about to be
// written: a step a turn, while the extent's buffer is held anyway. Hot. See rx_side.h.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "dataplane/lane/rx_flow.h"

namespace sluice::lane {
namespace {

// More than a burst of datagrams has, so that an extent is summed soon after it came, out of the core's
// caches. BLAKE3 takes some 50 us for that.
constexpr uint32_t kSumStepBytes = 320U << 10;

}  // namespace

// Its bytes are there, as they were at the source.
void RxSide::there(Extent& e) {
  if (e.object->sums == 0 || e.data == nullptr || e.object->is(board::kObjectDiscard)) return store(e);
  leave_steps(e);
  change(&e.state, RxExtentState::kSumming);
  summable_.insert(slot_of(e) - first_);
}

// It is restored and summed no more.
void RxSide::leave_steps(const Extent& e) {
  const uint32_t index = slot_of(e) - first_;
  if (e.state == RxExtentState::kRestoring) end_restoring(index);
  if (e.state != RxExtentState::kSumming) return;
  summable_.erase(index);
  if (summing_.extent == index) summing_ = {};
}

// One step. True when there was one, or is one to do. The extent that it ends may have to be told to control
// at once.
bool RxSide::sum_next() {
  if (summable_.empty() || !resources_.has_event_room()) return false;
  if (summing_.extent == ExtentTable::kNone) {
    summing_.extent = summable_.at(summable_turn_++ % summable_.size());
    const Extent& e = extents_[summing_.extent];
    summer_.begin(e.object->sums, e.key.number * e.object->extent_bytes, e.object->is_one_extent());
  }
  Extent& e = extents_[summing_.extent];
  const uint32_t step = std::min(kSumStepBytes, e.length - summing_.summed);
  summer_.add(e.data + summing_.summed, step);
  summing_.summed += step;
  if (summing_.summed != e.length) return true;
  e.summed = e.object->sums;
  e.sums = summer_.value();
  if (e.object->has_written(e.key.number)) {  // another worker has, as a repair
    release(e);
  } else {
    store(e);
  }
  return true;
}

}  // namespace sluice::lane
