// Whether a measurement kept the rate that was asked for.
//
// Pure. A rate counts frames as the pacer does, with FCS, preamble and gap (dataplane/core/pacer.h), so bytes
// are counted so. The time begins with the first news of data: a start is not part of a pace.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tools/cli/bench.h"

namespace sluice::cli {

struct BenchPace {
  static constexpr double kHeldError = 0.005;
  double asked_bps = 0;
  double wire_bps = 0;
  double error() const { return wire_bps / asked_bps - 1; }
  bool held() const { return error() >= -kHeldError && error() <= kHeldError; }
};

// `asked_bps`: 0 if nothing was asked for. None: nothing was measured either.
std::optional<BenchPace> bench_pace(const BenchInterval& moving, uint64_t asked_bps, bool ipv6);

std::string pace_line(const BenchPace& pace);
// asked_gbps, achieved_gbps, error; held_gbps: what was asked for, null if it was not held.
api::Json pace_json(const BenchPace& pace);

}  // namespace sluice::cli
