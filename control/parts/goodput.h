// How fast one leg brings bytes: an average over about a second of the time in which it is asked for some.
//
// Pure. The time from asking to the first byte does not count, nor does the time in which nothing is asked.
// So a leg that waits for work does not look slow. The interval between two calls may have any length: a
// late tick sees the mean of what came since the last one. Rates are bytes per second.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace sluice::parts {

class Goodput {
 public:
  static constexpr double kAverageS = 1.0;

  // Something is asked of an idle leg: the first byte can come a round trip later.
  void begin(uint64_t now_ns, uint64_t rtt_ns);
  void end() { busy_ = false; }  // nothing is asked of it any more
  void add(uint64_t bytes) { bytes_ += bytes; }
  // Takes what was added since the last call into account.
  void tick(uint64_t now_ns, uint64_t rtt_ns);
  // What was measured does not hold any more.
  void forget() { *this = Goodput(); }

  bool flowing() const { return busy_ && flowing_ && measured(); }  // bytes come of what was asked
  bool measured() const { return age_s_ > 0; }
  // It was measured for so long that no ramp of a beginning is left in it.
  bool known() const { return age_s_ >= kAverageS; }
  double age_s() const { return age_s_; }
  double rate() const { return rate_; }
  // Over about a round trip: it follows a ramp that the average does not.
  double recent_rate() const { return recent_; }

 private:
  bool busy_ = false;
  bool flowing_ = false;  // the first byte has come since begin()
  uint64_t since_ns_ = 0;
  uint64_t bytes_ = 0;  // not taken into account yet
  double age_s_ = 0;
  double rate_ = 0;
  double recent_ = 0;
};

}  // namespace sluice::parts
