// Errors against the Internet checksum (RFC 1071), with real data: a packet of random bytes gets a checksum
// in its first word, its bits are turned, and its words are added up again.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstring>
#include <vector>

#include "perf/alias/alias.h"

namespace sluice::alias {
namespace {

constexpr uint16_t kRight = 0xFFFF;  // the sum of a packet, its checksum included

// Words of the machine's own order: the sum is right in either.
uint16_t sum_of(const std::vector<uint64_t>& packet) {
  uint64_t sum = 0;
  for (const uint64_t each : packet) sum += (each & 0xFFFFFFFF) + (each >> 32);
  while (sum > 0xFFFF) sum = (sum & 0xFFFF) + (sum >> 16);
  return static_cast<uint16_t>(sum);
}

void fill(std::vector<uint64_t>& packet, Random& random) {
  for (uint64_t& each : packet) each = random();
  packet[0] &= ~UINT64_C(0xFFFF);
  packet[0] |= static_cast<uint16_t>(~sum_of(packet));
}

}  // namespace

void ask_checksum(const Question& question) {
  std::vector<uint64_t> packet(question.bytes / 8);
  const uint64_t bits = packet.size() * 64;
  Errors errors(question.bit_error_rate, bits, question.seed);
  Random random(~question.seed);
  uint64_t damaged = 0;
  uint64_t passed = 0;
  errors.next();
  while (damaged < question.packets) {
    fill(packet, random);
    const uint64_t number = errors.packet();
    do {
      packet[errors.bit() / 64] ^= UINT64_C(1) << (errors.bit() % 64);
      errors.next();
    } while (errors.packet() == number);
    ++damaged;
    passed += sum_of(packet) == kRight ? 1 : 0;
  }
  fmt::print("{{\"bytes\":{},\"packets\":{},\"damaged\":{},\"passed\":{}}}\n", packet.size() * 8,
             errors.packet(), damaged, passed);
}

}  // namespace sluice::alias
