// Ordinary memory of this process: no hugepages are asked for, transparent ones are welcome.
//
// Cold.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace sluice::udp {

class Memory {
 public:
  Memory() = default;
  ~Memory();
  Memory(Memory&& other) noexcept
      : begin_(std::exchange(other.begin_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Memory& operator=(Memory&& other) noexcept {
    std::swap(begin_, other.begin_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // All there from the start, so that nobody waits for it later; aligned to a page. Empty: there is not
  // that much.
  static Memory map(size_t bytes);
  // Taken when it is first written to.
  static Memory reserve(size_t bytes);

  uint8_t* data() const { return begin_; }
  size_t bytes() const { return bytes_; }
  explicit operator bool() const { return begin_ != nullptr; }
  std::span<uint8_t> span() const { return {begin_, bytes_}; }

 private:
  uint8_t* begin_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace sluice::udp
