// The questions of sluice-alias: each prints one JSON object and returns.
//
// Errors are those of Phatpackets' model (docs/SOURCES.md, section 3): each bit is wrong with the same
// probability, alone. One seed gives one result.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace sluice::alias {

// xoshiro256++ of D. Blackman and S. Vigna, seeded by splitmix64.
class Random {
 public:
  explicit Random(uint64_t seed) {
    for (uint64_t& word : state_) {
      seed += 0x9E3779B97F4A7C15;
      uint64_t mixed = (seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9;
      mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB;
      word = mixed ^ (mixed >> 31);
    }
  }

  uint64_t operator()() {
    const uint64_t out = std::rotl(state_[0] + state_[3], 23) + state_[0];
    const uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return out;
  }

  // Above 0, at most 1.
  double unit() { return (static_cast<double>((*this)() >> 11) + 1.0) * 0x1p-53; }

 private:
  uint64_t state_[4];
};

// Where the wrong bits of an endless row of packets are. What is right is skipped, not looked at.
class Errors {
 public:
  Errors(double bit_error_rate, uint64_t packet_bits, uint64_t seed)
      : random_(seed), scale_(1.0 / std::log1p(-bit_error_rate)), packet_bits_(packet_bits) {}

  // Goes to the next wrong bit.
  void next() {
    bit_ += 1 + static_cast<uint64_t>(std::log(random_.unit()) * scale_);
    if (bit_ >= packet_bits_) {
      packet_ += bit_ / packet_bits_;
      bit_ %= packet_bits_;
    }
  }

  uint64_t packet() const { return packet_; }
  uint64_t bit() const { return bit_; }

 private:
  Random random_;
  double scale_;
  uint64_t packet_bits_;
  uint64_t packet_ = 0;
  uint64_t bit_ = UINT64_MAX;  // before the first bit of the first packet
};

struct Question {
  uint64_t bytes = 1500;
  uint64_t bits = 12'144;
  double bit_error_rate = 1e-4;
  uint64_t packets = 1'000'000;
  uint64_t seed = 1;
  uint64_t generator = 0;
};

// Packets of `bits` under several CRCs: how many are damaged, how many pass each.
void ask_crcs(const Question& question);
// `packets` damaged packets of `bytes` of random data under the Internet checksum: how many pass.
void ask_checksum(const Question& question);
// Of all words u of the register of `generator` how many ones its first `bits` bits have: a histogram.
void ask_weights(const Question& question);
// What CRC-16, CRC-32C and CRC-64 of `bytes` take, in ns.
void ask_cost(const Question& question);

}  // namespace sluice::alias
