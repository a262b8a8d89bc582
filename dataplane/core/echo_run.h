// The echoes of one flow at the node that sends them: which have left, which have come back, and what each
// holds.
//
// Pure. Any payload comes back as it left, or was damaged on the way: so what an echo holds is made of its
// number alone, and is made again to compare.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace sluice {

class EchoRun {
 public:
  // What has not come back for so long after the last one left, and beyond the round trip, is lost.
  static constexpr uint64_t kWaitNs = 2'000'000'000;

  struct What {
    uint32_t asked = 0;
    uint32_t bytes = 0;
    uint64_t seed = 0;
  };
  EchoRun(const What& what, uint64_t now_ns)
      : what_(what), came_bits_((what.asked + 63) / 64), waits_until_ns_(now_ns + kWaitNs) {}

  uint32_t bytes() const { return what_.bytes; }
  bool has_unsent() const { return next_ < what_.asked; }
  uint32_t next() const { return next_; }
  void sent(uint64_t now_ns, uint64_t rtt_ns) {
    ++next_;
    waits_until_ns_ = now_ns + kWaitNs + rtt_ns;
  }

  enum class Came : uint8_t { kFirst, kAgain, kNeverSent };
  Came is_new(uint64_t number) const {
    if (number >= next_) return Came::kNeverSent;
    return (came_bits_[number / 64] >> (number % 64) & 1) != 0 ? Came::kAgain : Came::kFirst;
  }
  void came(uint64_t number) {
    came_bits_[number / 64] |= uint64_t{1} << (number % 64);
    ++came_;
  }

  // All have left, and not all are back.
  bool awaited() const { return !has_unsent() && came_ < what_.asked && !given_up_; }
  uint64_t waits_until_ns() const { return waits_until_ns_; }
  void look(uint64_t now_ns) { given_up_ |= awaited() && now_ns >= waits_until_ns_; }
  // None is sent or awaited any more. So it is where none was asked for.
  bool over() const { return !has_unsent() && !awaited(); }

  // What the echo of this number holds: half of them chance, the others all zeros, all ones, or bits that
  // alternate.
  void fill(uint64_t number, std::span<uint8_t> out) const {
    static constexpr uint8_t kSame[] = {0x00, 0xFF, 0x55, 0xAA};
    if (number % 2 == 1) {
      std::memset(out.data(), kSame[number / 2 % 4], out.size());
      return;
    }
    uint64_t state = what_.seed + (number << 32);
    for (size_t at = 0; at < out.size(); at += sizeof(uint64_t)) {
      const uint64_t word = mixed(state += 0x9E3779B97F4A7C15);
      std::memcpy(&out[at], &word, std::min(sizeof word, out.size() - at));
    }
  }

 private:
  // The output function of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
  // 2014).
  static uint64_t mixed(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }

  const What what_;
  std::vector<uint64_t> came_bits_;
  uint64_t waits_until_ns_;
  uint32_t next_ = 0;
  uint32_t came_ = 0;
  bool given_up_ = false;
};

}  // namespace sluice
