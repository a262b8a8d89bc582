// What a path did during one round: about one round trip, long enough to say something.
//
// Pure. Cuts the stream of reports into rounds that begin and end with a status of the peer, so that what was
// received and the time it took belong together. Datagrams that the peer has not seen yet may be late, not
// lost: those of the end of a round count in the next one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "control/rate/controller.h"

namespace sluice::rate {

// What loss is at least, two deviations below the fraction that was seen: few datagrams say little.
double loss_lower_bound(double loss, double datagrams);

struct Round {
  uint64_t duration_ns = 0;
  uint32_t statuses = 0;     // of the peer that came
  double datagrams = 0;      // that should have arrived: received and lost
  double loss = 0;           // of them, the fraction that did not
  double delivered_bps = 0;  // on the wire, of what arrived
  double sent_bps = 0;
  int64_t delay_min_ns = 0;  // valid if delay_known
  int64_t delay_max_ns = 0;  // likewise
  bool delay_known = false;
  // The delays differ by more than a queue makes them: datagrams overtake each other.
  bool disordered = false;
  double delay_change_s = 0;  // of the least delay from status to status, on the average
  double delay_noise_s = 0;   // by which the least delay may be too long: the more statuses, the less

  double loss_lower_bound() const { return rate::loss_lower_bound(loss, datagrams); }
};

// Of several rounds together.
struct LossCount {
  double datagrams = 0;  // as of Round
  double lost = 0;

  void add(const Round& round) {
    datagrams += round.datagrams;
    lost += round.datagrams * round.loss;
  }
  double loss() const { return datagrams > 0 ? lost / datagrams : 0; }
};

class RoundMeter {
 public:
  // The round that this report ends, if it ends one. Rounds take at least `round_ns`.
  std::optional<Round> take(const PathReport& report, uint64_t round_ns, uint64_t now_ns);
  void restart() { began_ = false; }               // what was seen so far belongs to no round
  uint64_t statuses() const { return statuses_; }  // as of the newest report
  // In front of the newest report: a status came that was not seen before.
  bool news() const { return news_; }

 private:
  void begin(const PathReport& report, uint64_t now_ns);
  void note_delay(const PathReport& report);
  void judge_disorder(Round& round) const;

  bool began_ = false;
  bool news_ = false;
  uint64_t statuses_ = 0;
  uint64_t began_ns_ = 0;
  uint64_t sent_ = 0;
  uint64_t received_ = 0;
  uint64_t missing_ = 0;         // of the last round's end: not received, late or lost
  uint64_t missing_before_ = 0;  // at the status before the newest
  uint64_t lost_ = 0;            // cumulative, of which the rounds before have told
  int64_t delay_min_ns_ = INT64_MAX;
  int64_t delay_max_ns_ = INT64_MIN;
  double delay_changes_s_ = 0;  // from status to status, summed up
  double delay_spreads_s_ = 0;  // within each
  int64_t delay_before_ns_ = 0;
  uint32_t delays_ = 0;
  uint32_t heard_ = 0;  // statuses
};

}  // namespace sluice::rate
