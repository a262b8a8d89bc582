// The weights of all windows of one length in the sequences of a CRC's shift register: with them
// perf/lab/aliasing.py knows the probability of an alias exactly, also for 32 bits.
//
// A window slides: one bit comes in, one goes out. Generators are those of maximal length, and x + 1 times
// such a one, whose sequences are those of the other factor and their complements. Others would need all
// their cycles.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdlib>
#include <vector>

#include "perf/alias/alias.h"

namespace sluice::alias {
namespace {

constexpr uint64_t kStart = 1;

// Divides by x again and again, modulo a generator; what is divided away each time, the constant term, is a
// sequence of the generator, read backwards. Windows have the same weights in either direction.
class Register {
 public:
  explicit Register(uint64_t generator) : taps_(generator >> 1) {}

  uint64_t next() {
    const uint64_t out = state_ & 1;
    state_ = (state_ >> 1) ^ ((~out + 1) & taps_);
    return out;
  }
  uint64_t state() const { return state_; }

 private:
  uint64_t taps_;
  uint64_t state_ = kStart;
};

// Divides by x + 1. A generator with an even number of terms has it as a factor.
uint64_t without_x_plus_1(uint64_t generator) {
  uint64_t quotient = 0;
  for (int bit = std::bit_width(generator) - 1; bit > 0; --bit) {
    if ((generator >> bit & 1) == 0) continue;
    quotient |= UINT64_C(1) << (bit - 1);
    generator ^= UINT64_C(3) << (bit - 1);
  }
  return quotient;
}

}  // namespace

void ask_weights(const Question& question) {
  const bool even = std::popcount(question.generator) % 2 == 0;
  const uint64_t generator = even ? without_x_plus_1(question.generator) : question.generator;
  std::vector<uint64_t> count(question.bits + 1);
  Register front(generator);
  Register back(generator);
  uint64_t weight = 0;
  for (uint64_t bit = 0; bit < question.bits; ++bit) weight += front.next();
  uint64_t windows = 0;
  do {
    ++count[weight];
    ++windows;
    weight += front.next();
    weight -= back.next();
  } while (back.state() != kStart);
  // A shorter cycle: the generator is not of these two kinds.
  if (windows != (UINT64_C(1) << (std::bit_width(generator) - 1)) - 1) {
    fmt::print(stderr, "sluice-alias: {:x}: a cycle of {}, not of maximal length; give another generator\n",
               question.generator, windows);
    std::exit(2);
  }
  ++count[0];
  if (even) {
    for (uint64_t low = 0, high = question.bits; low <= high; ++low, --high) {
      const uint64_t both = count[low] + count[high];
      count[low] = count[high] = both;
      if (high == 0) break;
    }
  }
  fmt::print("{{\"bits\":{},\"windows\":{},\"weights\":{{", question.bits, windows);
  bool first = true;
  for (uint64_t each = 0; each <= question.bits; ++each) {
    if (count[each] == 0) continue;
    fmt::print("{}\"{}\":{}", first ? "" : ",", each, count[each]);
    first = false;
  }
  fmt::print("}}}}\n");
}

}  // namespace sluice::alias
