// What a path does to its frames, in one direction: the settings of every model, as a struct and as JSON.
//
// Pure. A value of zero turns its model off; all are off by default. The names of the keys are those of the
// members (docs/WIRE-EMULATOR.md has the table). Reading is strict: an unknown key, a wrong type or a value
// out of range is an error that names the key, and nothing is changed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "dataplane/base/error.h"

namespace sluice::emulator {

using Json = nlohmann::ordered_json;

struct RateSettings {
  uint64_t bits_per_s = 0;      // of the bottleneck; JSON also takes "2.5G"
  uint64_t queue_bytes = 0;     // waiting for it, at most; 0: no limit
  uint32_t overhead_bytes = 0;  // each frame takes so much longer on the link: 24 on Ethernet
  bool operator==(const RateSettings&) const = default;
};

// Gilbert-Elliott with the parameters of tc-netem(8): p, r, 1-h, 1-k.
struct BurstSettings {
  double p = 0;          // good -> bad, per frame
  double r = 0;          // bad -> good
  double loss_bad = 1;   // probability of loss in the bad state, 1-h
  double loss_good = 0;  // in the good one, 1-k
  bool operator==(const BurstSettings&) const = default;
};

struct LossSettings {
  double probability = 0;  // each frame, independently (Bernoulli)
  BurstSettings burst;
  double length_l0_bytes = 0;     // 1 - exp(-L / l0)
  uint64_t every_nth = 0;         // frames n, 2n, 3n ...
  std::vector<uint64_t> packets;  // these frames. Numbers count from 1 since the loss settings changed
  bool operator==(const LossSettings&) const = default;
};

struct CorruptSettings {     // probabilities, each on its own
  double bits = 0;           // some bits anywhere in the frame are inverted
  double bits_repaired = 0;  // some bits of the UDP payload, and the UDP checksum is made right again
  double swap_words = 0;     // two 16-bit words of the UDP payload change places
  double truncate = 0;       // the end of the frame is missing
  double forge = 0;          // a chunk is altered, and its CRC-64 and the UDP checksum are right
  uint32_t bits_count = 1;   // of `bits` and `bits_repaired`, different ones
  bool operator==(const CorruptSettings&) const = default;
};

struct DuplicateSettings {
  double probability = 0;
  double delay_us = 0;  // the second copy comes so much later
  bool operator==(const DuplicateSettings&) const = default;
};

// Sum of: fixed; exponential with mean us + us_per_byte * L + us_over_ln / ln(L); uniform in +-uniform_us;
// normal with deviation normal_us. Never below zero.
struct DelaySettings {
  double fixed_us = 0;
  double exponential_us = 0;
  double exponential_us_per_byte = 0;
  double exponential_us_over_ln = 0;  // HIPSTER: 1024000
  double uniform_us = 0;
  double normal_us = 0;
  bool keep_order = false;  // no frame leaves before one that came before it
  bool operator==(const DelaySettings&) const = default;
};

struct ReorderSettings {
  double probability = 0;
  uint32_t distance = 1;       // so many later frames go first
  double hold_us_max = 10000;  // or so much time
  bool operator==(const ReorderSettings&) const = default;
};

enum class LengthOf : uint8_t {
  kUdpPayload,  // L is the UDP payload; of other frames, the whole frame
  kFrame,
};

struct Settings {
  RateSettings rate;
  LossSettings loss;
  CorruptSettings corrupt;
  DuplicateSettings duplicate;
  DelaySettings delay;
  ReorderSettings reorder;
  LengthOf length_of = LengthOf::kUdpPayload;
  bool operator==(const Settings&) const = default;
};

inline constexpr uint32_t kReorderDistanceMax = 1024;
inline constexpr double kDelayUsMax = 3.6e9;  // an hour

// Every key, also those that are off.
Json to_json(const Settings& settings);
// `changes` on top of `base`; null takes a key, or a whole section, back to its default.
Result<Settings> changed(const Settings& base, const Json& changes);

}  // namespace sluice::emulator
