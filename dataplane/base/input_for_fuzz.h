// A fuzzer's bytes as numbers, choices and spans: what every *_fuzz.cc with structured input reads from.
//
// Past the end it gives zeros, so that each input means something. Whatever is fuzzed so has its DCHECKs on.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>

#include "dataplane/base/check.h"

namespace sluice::fuzz {

// An invariant of the code under test; breaking it is a finding, in every build.
inline void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "invariant broken: %s\n", what);
  std::abort();
}

class Input {
 public:
  Input(const uint8_t* data, size_t size) : left_(data, size) { base::set_dchecks(true); }

  bool empty() const { return left_.empty(); }

  template <typename T>
  T take() {
    static_assert(std::is_trivially_copyable_v<T>);
    T value{};
    const size_t n = left_.size() < sizeof value ? left_.size() : sizeof value;
    if (n > 0) std::memcpy(&value, left_.data(), n);
    left_ = left_.subspan(n);
    return value;
  }
  bool flag() { return (take<uint8_t>() & 1) != 0; }
  // One byte's worth: `bound` is at most 256.
  uint32_t below(uint32_t bound) { return take<uint8_t>() % bound; }
  // Mostly where things end: near a power of two, or near the largest number.
  uint64_t edge() {
    const auto form = take<uint8_t>();
    const uint64_t byte = take<uint8_t>();
    const uint64_t delta = byte < 128 ? byte : byte - 256;  // either side
    if (form < 128) return delta + (uint64_t{form % 64U} << (form % 5 * 4));
    if (form < 192) return (uint64_t{1} << (form - 128)) + delta;
    return form < 224 ? take<uint32_t>() : take<uint64_t>();
  }
  std::span<const uint8_t> bytes(size_t n) {
    const auto front = left_.first(n < left_.size() ? n : left_.size());
    left_ = left_.subspan(front.size());
    return front;
  }
  std::span<const uint8_t> rest() { return bytes(left_.size()); }
  std::string text(size_t n) {
    const auto b = bytes(n);
    return {reinterpret_cast<const char*>(b.data()), b.size()};
  }

 private:
  std::span<const uint8_t> left_;
};

}  // namespace sluice::fuzz
