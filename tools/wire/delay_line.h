// Frames on their way: kept until their time, given back in the order of their times; equal times in the
// order in which they came.
//
// Pure; one thread. A binary heap over buffers of a few sizes that are used again last in, first out, so that
// a short line stays in cache. Bounded by bytes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace sluice::emulator {

class DelayLine {
 public:
  explicit DelayLine(uint64_t bytes_max) : bytes_max_(bytes_max) {}

  // False: full, or the frame is longer than any buffer; nothing was kept.
  bool add(std::span<const uint8_t> bytes, uint64_t deliver_ns);

  size_t size() const { return heap_.size(); }
  bool empty() const { return heap_.empty(); }
  // The first to leave; only if not empty.
  uint64_t front_ns() const { return heap_.front().deliver_ns; }
  std::span<const uint8_t> front() const { return {heap_.front().data, heap_.front().bytes}; }
  void pop();

  uint64_t bytes_peak() const { return bytes_peak_; }  // of buffers in use
  void forget_peak() { bytes_peak_ = bytes_in_use_; }

 private:
  struct Entry {
    uint64_t deliver_ns;
    uint64_t serial;
    uint8_t* data;
    uint32_t bytes;
  };
  static bool later(const Entry& a, const Entry& b) {
    return a.deliver_ns != b.deliver_ns ? a.deliver_ns > b.deliver_ns : a.serial > b.serial;
  }
  static constexpr std::array<uint32_t, 6> kSizes{256, 1024, 2048, 5120, 10240, 65536};
  static size_t size_class(size_t bytes);
  uint8_t* buffer(size_t size_class);

  const uint64_t bytes_max_;
  uint64_t bytes_in_use_ = 0;
  uint64_t bytes_peak_ = 0;
  uint64_t serial_ = 0;
  std::vector<Entry> heap_;
  std::array<std::vector<uint8_t*>, kSizes.size()> free_;
  std::vector<std::unique_ptr<uint8_t[]>> slabs_;
};

}  // namespace sluice::emulator
