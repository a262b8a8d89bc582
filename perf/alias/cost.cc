// What a checksum takes: FMFT's, a CRC-16 by a table of 16 entries as Qt's qChecksum has it (docs/SOURCES.md,
// FMFT, section 3), beside those of the product. A baseline of the lab: the product has no CRC-16.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <vector>

#include "dataplane/crc/crc.h"
#include "perf/alias/alias.h"

namespace sluice::alias {
namespace {

constexpr uint16_t kReflectedCcitt = 0x8408;
constexpr double kSeconds = 0.05;
constexpr int kRounds = 5;

constexpr std::array<uint16_t, 16> table() {
  std::array<uint16_t, 16> out{};
  for (uint16_t each = 0; each < 16; ++each) {
    uint16_t rest = each;
    for (int bit = 0; bit < 4; ++bit)
      rest = static_cast<uint16_t>((rest >> 1) ^ ((rest & 1) != 0 ? kReflectedCcitt : 0));
    out[each] = rest;
  }
  return out;
}

// ISO 3309: four bits at a time, the lower ones first.
uint64_t crc16(const uint8_t* data, size_t bytes) {
  static constexpr std::array<uint16_t, 16> kTable = table();
  uint16_t crc = 0xFFFF;
  for (size_t at = 0; at < bytes; ++at) {
    crc = static_cast<uint16_t>((crc >> 4) ^ kTable[(crc ^ data[at]) & 15]);
    crc = static_cast<uint16_t>((crc >> 4) ^ kTable[(crc ^ (data[at] >> 4)) & 15]);
  }
  return static_cast<uint16_t>(~crc);
}

// Of this thread, so that what else runs on the machine does not count.
double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// The median of some rounds, in ns.
template <typename Sum>
double time_of(std::vector<uint8_t>& data, Sum sum) {
  std::array<double, kRounds> rounds{};
  for (double& each : rounds) {
    uint64_t runs = 0;
    const double begin = cpu_seconds();
    double seconds = 0;
    while (seconds < kSeconds) {
      for (int run = 0; run < 64; ++run, ++runs)
        data[0] = static_cast<uint8_t>(sum(data.data(), data.size()));
      seconds = cpu_seconds() - begin;
    }
    each = seconds * 1e9 / static_cast<double>(runs);
  }
  std::nth_element(rounds.begin(), rounds.begin() + kRounds / 2, rounds.end());
  return rounds[kRounds / 2];
}

}  // namespace

void ask_cost(const Question& question) {
  std::vector<uint8_t> data(question.bytes);
  Random random(question.seed);
  for (uint8_t& each : data) each = static_cast<uint8_t>(random());
  const auto ours = [](wire::CrcKind kind) {
    return [kind](const uint8_t* bytes, size_t count) { return crc::compute(kind, 0, bytes, count); };
  };
  const uint8_t check[] = {'1', '2', '3', '4', '5', '6', '7', '8', '9'};
  fmt::print(
      "{{\"bytes\":{},\"crc16_check\":{},\"crc16_ns\":{:.2f},\"crc32c_ns\":{:.2f},\"crc64_ns\":{:.2f}}}\n",
      data.size(), crc16(check, sizeof check), time_of(data, crc16),
      time_of(data, ours(wire::CrcKind::kCrc32c)), time_of(data, ours(wire::CrcKind::kCrc64Ecma)));
}

}  // namespace sluice::alias
