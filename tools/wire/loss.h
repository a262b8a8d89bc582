// Which frames are lost. Pure.
//
// All models that are on draw for every frame; the first that says so, in the order of LossReason, is the
// reason. The length law is HIPSTER's channel, 1 - exp(-L/1024) (docs/SOURCES.md; section 3).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tools/wire/random.h"
#include "tools/wire/settings.h"

namespace sluice::emulator {

enum LossReason : uint8_t {
  kLossNone = 0,
  kLossPackets,
  kLossEveryNth,
  kLossBurst,
  kLossLength,
  kLossProbability,
  kLossReasons,
};

class Loss {
 public:
  explicit Loss(const LossSettings& settings);
  // Numbers begin at 1 again and the burst model in its good state, if anything changed.
  void set(const LossSettings& settings);

  // `frame` is the number that the seed's draws are for, `length` the L of the law.
  LossReason decide(uint64_t seed, uint64_t frame, uint32_t length);

 private:
  bool burst(Draws draws);

  LossSettings settings_;  // packets sorted
  uint64_t number_ = 0;
  bool bad_ = false;
};

}  // namespace sluice::emulator
