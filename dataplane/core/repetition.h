// How often a chunk is sent where most of what is sent is lost.
//
// Pure. Waiting for the report of a loss takes a round trip and the time for reordering. On a channel that
// loses most datagrams, and delays the others (HIPSTER, docs/SOURCES.md), the last chunk of an extent would
// take twenty of these, and all the memory of both nodes would wait for it. So what was lost several times is
// sent several times at once; and a sender that has nothing else to send repeats what its peer may miss.
// Chunks per byte that arrives are the price, so none of this is done on a path that loses less.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace sluice {

class Repetition {
 public:
  static constexpr double kLossMin = 0.2;
  static constexpr uint32_t kCopiesMax = 8;
  static constexpr uint32_t kPassesMax = 40;

  explicit Repetition(double loss) : loss_(std::min(loss, 0.95)) {}

  bool called_for() const { return loss_ >= kLossMin; }

  // At once, of a chunk that was sent again `tries` times before, and lost: twice as many each time, until
  // hardly any is lost.
  uint32_t copies(uint32_t tries) const {
    if (!called_for()) return 1;
    const double enough = std::ceil(std::log(0.02) / std::log(loss_));
    return static_cast<uint32_t>(std::min<double>(
        {static_cast<double>(1U << std::min(tries, 3U)), std::max(1.0, enough), kCopiesMax}));
  }
  // Of a chunk, on the average, until one of them arrives.
  double transmissions() const {
    double sent = 0;
    double missing = 1;  // chance that all before were lost
    for (uint32_t turn = 0; turn < 40 && missing > 1e-6; ++turn) {
      const double copies = turn == 0 ? 1 : this->copies(turn - 1);
      sent += missing * copies;
      missing *= std::pow(loss_, copies);
    }
    return sent;
  }
  // Over an extent of so many chunks, until one of it is still missing by a chance of 1/1000; 0: none.
  uint32_t passes(uint32_t chunks) const {
    if (!called_for()) return 0;
    const double passes = std::ceil(std::log(1e-3 / std::max(1U, chunks)) / std::log(loss_));
    return static_cast<uint32_t>(std::min<double>(passes, kPassesMax));
  }

 private:
  double loss_;
};

}  // namespace sluice
