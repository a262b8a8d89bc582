// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/bench_pace.h"

#include <fmt/format.h>

#include <cmath>

#include "dataplane/core/wire.h"
#include "tools/cli/format.h"

namespace sluice::cli {
namespace {

constexpr uint64_t kEthernetBytes = 14 + 24;  // FCS, preamble and gap are 24
constexpr uint64_t kIp4UdpBytes = 20 + 8;
constexpr uint64_t kIp6UdpBytes = 40 + 8;

}  // namespace

std::optional<BenchPace> bench_pace(const BenchInterval& moving, uint64_t asked_bps, bool ipv6) {
  if (asked_bps == 0 || moving.chunks == 0 || moving.seconds() <= 0) return std::nullopt;
  const uint64_t around = kEthernetBytes + (ipv6 ? kIp6UdpBytes : kIp4UdpBytes) + wire::kHeaderBytes;
  const auto bytes = static_cast<double>(moving.sent_bytes + moving.chunks * around);
  return BenchPace{.asked_bps = static_cast<double>(asked_bps), .wire_bps = bytes * 8 / moving.seconds()};
}

std::string pace_line(const BenchPace& pace) {
  return fmt::format("    paced at {} of {} on the wire, {:.2f} % off: {}\n", format_rate(pace.wire_bps),
                     format_rate(pace.asked_bps), 100 * std::abs(pace.error()),
                     pace.held() ? "held" : "not held");
}

api::Json pace_json(const BenchPace& pace) {
  return {{"asked_gbps", pace.asked_bps / 1e9},
          {"achieved_gbps", pace.wire_bps / 1e9},
          {"error", pace.error()},
          {"held_gbps", pace.held() ? api::Json(pace.asked_bps / 1e9) : api::Json()}};
}

}  // namespace sluice::cli
