// See delay_line.h.
// SPDX-License-Identifier: Apache-2.0
#include "tools/wire/delay_line.h"

#include <algorithm>
#include <cstring>

namespace sluice::emulator {
namespace {

constexpr size_t kSlabBytes = 1 << 18;

}  // namespace

size_t DelayLine::size_class(size_t bytes) {
  return static_cast<size_t>(std::ranges::lower_bound(kSizes, bytes) - kSizes.begin());
}

uint8_t* DelayLine::buffer(size_t size_class) {
  std::vector<uint8_t*>& free = free_[size_class];
  if (free.empty()) {
    const size_t bytes = kSizes[size_class];
    const size_t count = std::max<size_t>(1, kSlabBytes / bytes);
    slabs_.push_back(std::make_unique_for_overwrite<uint8_t[]>(count * bytes));
    for (size_t i = count; i-- > 0;) free.push_back(slabs_.back().get() + i * bytes);
  }
  uint8_t* const data = free.back();
  free.pop_back();
  return data;
}

bool DelayLine::add(std::span<const uint8_t> bytes, uint64_t deliver_ns) {
  const size_t chosen = size_class(bytes.size());
  if (chosen == kSizes.size() || bytes_in_use_ + kSizes[chosen] > bytes_max_) return false;
  uint8_t* const data = buffer(chosen);
  if (!bytes.empty()) std::memcpy(data, bytes.data(), bytes.size());
  bytes_in_use_ += kSizes[chosen];
  bytes_peak_ = std::max(bytes_peak_, bytes_in_use_);
  heap_.push_back({deliver_ns, serial_++, data, static_cast<uint32_t>(bytes.size())});
  std::ranges::push_heap(heap_, later);
  return true;
}

void DelayLine::pop() {
  const Entry& first = heap_.front();
  const size_t chosen = size_class(first.bytes);
  free_[chosen].push_back(first.data);
  bytes_in_use_ -= kSizes[chosen];
  std::ranges::pop_heap(heap_, later);
  heap_.pop_back();
}

}  // namespace sluice::emulator
