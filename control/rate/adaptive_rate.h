// The law `adaptive`: as much as the path carries, with a short queue at its bottleneck.
//
// Pure. It looks for the window (bytes on the wire that are on their way) with which the delay is a little
// above that of the empty path; loss that does not depend on its own rate does not slow it down (Phatpackets,
// docs/SOURCES.md, section 2.3: rate-based, probing, not overly aggressive). Where the queue is filled by
// others it yields to them. docs/RATE.md explains it with plots. One instance for all that a node sends to
// one peer.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "control/rate/buffer_depth.h"
#include "control/rate/ceiling.h"
#include "control/rate/controller.h"
#include "control/rate/delay_base.h"
#include "control/rate/loss_trial.h"
#include "control/rate/round_meter.h"
#include "control/rate/silence.h"
#include "control/rate/start_pulse.h"

namespace sluice::rate {

class AdaptiveRate final : public Controller {
 public:
  // Loss up to `expected_loss` (0 to 1) is taken for the path's, without a test.
  AdaptiveRate(uint64_t cap_bps, double expected_loss, uint64_t now_ns);

  uint64_t step(const PathReport& report, uint64_t now_ns) override;

 private:
  enum class Phase : uint8_t { kStart, kRun, kDrain };
  static constexpr double kTrialDatagrams = 60;  // of fewer in a round little loss says nothing
  // What a round means, in the terms of the law.
  struct Sight {
    double delivered_bps = 0;
    double loss = 0;
    double loss_bound = 0;  // it is at least this
    double datagrams = 0;
    double queue_s = 0;
    double round_trip_s = 0;  // with the queue
    double target_s = 0;      // of the queue
    bool limited = false;     // by something else than the rate: nothing was learnt of what is possible
  };

  void follow(const PathReport& report, const Round& round, uint64_t now_ns);
  Sight look(const Round& round);
  double target_s(double rate_bps) const;
  double pipe_s() const;
  double turn_s() const;
  void pulse(const PathReport& report, uint64_t now_ns);
  void start(const Sight& sight, uint64_t now_ns);
  void run(const Round& round, const Sight& sight, uint64_t now_ns);
  void test(const Round& round, const Sight& sight, uint64_t now_ns);
  void drain(const Round& round, const Sight& sight, uint64_t now_ns);
  void begin_drain(const Round& round, const Sight& sight, uint64_t now_ns);
  void unlearn(const Round& round);
  void grow(const Sight& sight, uint64_t now_ns);
  void enter_run(double window_bits, uint64_t now_ns);
  void pace(const PathReport& report, uint64_t now_ns);
  void overshot();
  bool disordered() const;
  // Before it was, a silence says only that the path is long, or its next hop not found yet.
  bool heard() const { return rounds_.statuses() != 0; }
  double untold_queue_s() const;
  double growth_a_round() const;  // of the start
  void judge_yield(const Round& round, const Sight& sight);
  double excess(double over) const { return 1.5 * random_loss_ + over; }
  double limit(double rate_bps) const;

  const double expected_loss_;
  Phase phase_ = Phase::kStart;
  Silence silence_;
  RoundMeter rounds_;
  DelayBase base_;
  Ceiling ceiling_;
  BufferDepth depth_;
  LossTrial test_;

  double target_bps_ = 0;            // what the law wants; the rate is this, within the cap
  double datagram_bits_ = 8 * 8192;  // on the wire, on average
  double window_bits_ = 0;           // on the way, of what arrives
  double rtt_s_ = 0;                 // of the empty path
  double queue_s_ = 0;               // smoothed
  double round_trip_s_ = 0;          // smoothed, with all that delays it
  double random_loss_ = 0;           // the baseline
  double capacity_bps_ = 0;          // delivered while there was a queue
  uint64_t next_test_ns_ = 0;
  uint64_t paced_ns_ = 0;
  uint64_t quiet_until_ns_ = 0;  // what is reported until then was sent before a silence

  struct Disorder {
    bool now = false;     // the delays of the last round were disordered
    double change_s = 0;  // of the least delay, from status to status; smoothed
  } disorder_;
  struct Start {
    StartPulse pulse;
    double found_bps = 0;              // what the path carries, as a pulse told; 0: none did
    uint64_t lowered_ns = 0;           // when one did, and it is less than the rate was
    bool judged = false;               // a round has been looked at
    double best_bps = 0;               // delivered, so far
    int flat_rounds = 0;               // since then
    bool held = false;                 // in this round the rate does not grow
    bool overshot = false;             // since the queue has shown: the rate is halved
    double suspect_loss = 0;           // that made a trial begin
    double suspect_datagrams = 0;      // of which it is
    uint64_t suspect_ns = UINT64_MAX;  // since when too much looked lost
  } start_;
  struct Growth {
    int hold_rounds = 0;  // until what was changed can be seen
    int calm_rounds = 0;  // with an empty queue; below zero: no acceleration for so long
    size_t accelerations = 0;
    bool to_be_checked = false;
    double window_before = 0;
    double delivered_before = 0;
    uint64_t empty_ns = 0;  // when the queue was known to be empty
  } growth_;
  // What was lost lately, while nothing was tried.
  struct Recent {
    uint32_t statuses = 0;
    LossCount count;
  } recent_;
  struct Crowd {
    double most_bps = 0;  // ever delivered
    double queue_s = 0;   // over seconds
  } crowd_;
  struct Drain {
    uint64_t began_ns = 0;
    int64_t delay_ns = 0;  // the least so far
  } drain_;
};

}  // namespace sluice::rate
