// How many statuses the sender of the data does not hear, and what follows for the size of the next ones.
//
// Pure; one owner: the receiver of a flow. Whether a channel loses datagrams whatever their length, or long
// ones more than short ones (P(loss) = 1 - exp(-bytes / L0), HIPSTER, docs/SOURCES.md), cannot be told from
// here. So statuses get short where many are lost, which helps with the second and costs little with the
// first.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "dataplane/core/status.h"

namespace sluice {

class StatusLoss {
 public:
  static constexpr uint32_t kWindow = 64;                    // statuses over which loss is judged
  static constexpr uint32_t kBelowBytes = 64 + 8 + 20 + 14;  // headers around the payload, with IPv4
  static constexpr double kLossMin = 0.03;                   // of less nothing follows
  static constexpr double kMissedGap = 1e-3;  // chance that no status which names a gap is heard
  static constexpr uint8_t kRepeatsMin = 3;
  static constexpr uint8_t kRepeatsMax = 15;

  void sent(size_t payload_bytes) {
    ++sent_;
    bytes_ += payload_bytes + kBelowBytes;
  }
  // The sender says that it has heard so many (modulo 2^32). The echo lags behind, always by about as much.
  void heard(uint32_t statuses) {
    const uint64_t sent = sent_ - window_sent_;
    if (sent < kWindow) return;
    const uint32_t heard = statuses - window_heard_;
    // None at all: the echo of the first ones is on its way, or the count began anew.
    if (heard != 0 && heard <= 2 * sent)
      judge(std::min<double>(1.0, heard / static_cast<double>(sent)), sent);
    window_heard_ = statuses;
    window_sent_ = sent_;
    bytes_ = 0;
  }

  size_t payload_bytes_max() const { return bytes_max_; }
  uint8_t gap_repeats() const { return repeats_; }
  double loss() const { return loss_; }

 private:
  void judge(double share_heard, uint64_t sent) {
    loss_ = 1 - share_heard;
    bytes_max_ = wire::kStatusBytesMax;
    repeats_ = kRepeatsMin;
    if (loss_ < kLossMin) return;
    const double frame_bytes = static_cast<double>(bytes_) / static_cast<double>(sent);
    // A quarter of L0: one in five such datagrams is lost.
    const double room = frame_bytes / -std::log(std::max(share_heard, 1e-3)) / 4 - kBelowBytes;
    bytes_max_ = static_cast<size_t>(std::clamp<double>(room, wire::kStatusBytesMin, wire::kStatusBytesMax));
    const double repeats = std::ceil(std::log(kMissedGap) / std::log(loss_));
    repeats_ = static_cast<uint8_t>(std::clamp<double>(repeats, kRepeatsMin, kRepeatsMax));
  }

  uint64_t sent_ = 0;
  uint64_t window_sent_ = 0;
  uint32_t window_heard_ = 0;
  uint64_t bytes_ = 0;  // of the frames sent in this window
  size_t bytes_max_ = wire::kStatusBytesMax;
  uint8_t repeats_ = kRepeatsMin;
  double loss_ = 0;
};

}  // namespace sluice
