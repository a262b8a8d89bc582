// Errors against CRCs. A CRC is linear, so whether damage passes depends on the wrong bits alone: it does if
// the sum of x^i mod g over the wrong bits i is zero.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdio>
#include <vector>

#include "perf/alias/alias.h"

namespace sluice::alias {
namespace {

struct Kind {
  const char* name;
  int degree;
  uint64_t generator;  // without its highest term
};

// The first is maximal, as Phatpackets' Figure 6 asks; then FMFT's, Ethernet's, iSCSI's, and XZ's (ours).
constexpr Kind kKinds[] = {{"crc16", 16, 0x100B},
                           {"crc16_ccitt", 16, 0x1021},
                           {"crc32", 32, 0x04C11DB7},
                           {"crc32c", 32, 0x1EDC6F41},
                           {"crc64", 64, 0x42F0E1EBA9EA3693}};
constexpr size_t kCount = std::size(kKinds);

// x^i mod g of all kinds, side by side: a wrong bit touches one line of the cache.
struct Rests {
  uint64_t of[kCount] = {};
};

std::vector<Rests> rests(uint64_t bits) {
  std::vector<Rests> out(bits);
  for (size_t kind = 0; kind < kCount; ++kind) {
    const auto& [name, degree, generator] = kKinds[kind];
    const uint64_t top = UINT64_C(1) << (degree - 1);
    const uint64_t mask = top | (top - 1);
    uint64_t rest = 1;
    for (uint64_t bit = 0; bit < bits; ++bit) {
      out[bit].of[kind] = rest;
      rest = ((rest << 1) & mask) ^ ((rest & top) != 0 ? generator : 0);
    }
  }
  return out;
}

}  // namespace

void ask_crcs(const Question& question) {
  const std::vector<Rests> of_bit = rests(question.bits);
  Errors errors(question.bit_error_rate, question.bits, question.seed);
  uint64_t damaged = 0;
  uint64_t passed[kCount] = {};
  for (errors.next(); errors.packet() < question.packets;) {
    const uint64_t packet = errors.packet();
    Rests sum;
    do {
      for (size_t kind = 0; kind < kCount; ++kind) sum.of[kind] ^= of_bit[errors.bit()].of[kind];
      errors.next();
    } while (errors.packet() == packet);
    ++damaged;
    for (size_t kind = 0; kind < kCount; ++kind) passed[kind] += sum.of[kind] == 0 ? 1 : 0;
  }
  fmt::print("{{\"packets\":{},\"damaged\":{},\"passed\":{{", question.packets, damaged);
  for (size_t kind = 0; kind < kCount; ++kind)
    fmt::print("{}\"{}\":{}", kind == 0 ? "" : ",", kKinds[kind].name, passed[kind]);
  fmt::print("}}}}\n");
}

}  // namespace sluice::alias
