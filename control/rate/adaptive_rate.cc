// SPDX-License-Identifier: Apache-2.0
#include "control/rate/adaptive_rate.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "dataplane/core/repetition.h"

namespace sluice::rate {
namespace {

constexpr double kRoundMinS = 4e-3;
// A loop cannot turn faster than statuses come and are looked at: on shorter paths the window is that of a
// path of this length.
constexpr double kPipeMinS = 8e-3;
constexpr double kWindowMinDatagrams = 2;
constexpr double kLeastShare = 0.01;  // of the most that ever arrived, whatever others do
constexpr double kLearntLossMax = 0.15;
constexpr uint64_t kTestEveryNs = 10'000'000'000;
constexpr uint32_t kRecentStatuses = 16;  // after which what was lost is compared with the baseline
constexpr uint64_t kDrainEveryNs = 10'000'000'000;
constexpr double kNoises = 2;    // that the least delay of a round may be above its mean by chance
constexpr double kUntold = 0.1;  // of a disordered round trip: a queue as short is not told from chance
constexpr double kCrowdS = 2;
constexpr double kCrowdTargets = 2.5;
constexpr double kCrowdLeaves = 0.8;  // of that: a crowd on the brink is not told of again and again
constexpr double kTargetMinS = BufferDepth::kLeastS / 2;
constexpr double kJitters = 2;           // that a queue to be kept is longer
constexpr size_t kCarefulStep = 1;       // the longest where too much is lost at once
constexpr double kFallsNs = 100e3;       // by less than that a delay does not fall
constexpr int kCalmRounds = 4;           // with an empty queue before more is tried
constexpr double kDepthLoss = 0.0005;    // beyond what is expected: is it a short buffer's?
constexpr double kTargetOfDepth = 0.25;  // the rest is for others
constexpr std::array kSteps{0.05, 0.1, 0.2, 0.3};

double seconds(uint64_t ns) { return static_cast<double>(ns) * 1e-9; }
uint64_t nanoseconds(double s) { return static_cast<uint64_t>(std::clamp(s, 0.0, 1e9) * 1e9); }

}  // namespace

double AdaptiveRate::pipe_s() const { return std::max(rtt_s_, kPipeMinS); }

// How long it takes until what is done shows: the round trip, without what waits in the queue. Where delays
// are disordered that is much more than the shortest.
double AdaptiveRate::turn_s() const { return std::max({rtt_s_, kRoundMinS, round_trip_s_ - queue_s_}); }

double AdaptiveRate::limit(double rate_bps) const {
  return std::min(rate_bps, static_cast<double>(cap_bps_));
}

// Short on fast paths, where little time is many datagrams; long enough on slow ones to be seen.
double AdaptiveRate::target_s(double rate_bps) const {
  const double gbps = std::max(1e-3, rate_bps * 1e-9);
  const double usual_s = std::clamp(2e-3 / std::sqrt(gbps), 0.5e-3, 8e-3) + 0.0025 * rtt_s_;
  if (depth_.seconds() == 0) return usual_s;
  // A queue shorter than what delays differ by themselves could not be kept.
  return std::min(usual_s,
                  std::max({kTargetMinS, kJitters * disorder_.change_s, kTargetOfDepth * depth_.seconds()}));
}

uint64_t AdaptiveRate::step(const PathReport& report, uint64_t now_ns) {
  const Silence::State silence = silence_.look(report, now_ns);
  if (silence != Silence::State::kHeard) {
    const bool stopped = silence == Silence::State::kStopped;
    condition_ = stopped ? Condition::kStopped : Condition::kCrawling;
    quiet_until_ns_ = 0;  // set when the peer is heard again
    rounds_.restart();
    test_.abort();
    if (heard()) start_.pulse.abort();
    rate_bps_ = stopped ? 0 : at_most(target_bps_ * Silence::kCrawlFraction, cap_bps_);
    return rate_bps_;
  }
  if (report.rtt_min_ns != 0) rtt_s_ = seconds(std::min(report.rtt_min_ns, Silence::kStopNs));
  if (condition_ >= Condition::kCrawling) {
    if (heard()) {
      quiet_until_ns_ = now_ns + nanoseconds(2 * rtt_s_);
    } else if (start_.pulse.sending()) {  // what left of it left at a crawl
      start_.pulse.begin(start_.pulse.rate_bps(), report.sent);
    }
    condition_ = phase_ == Phase::kStart ? Condition::kRamping : Condition::kRunning;
  }
  if (now_ns < quiet_until_ns_ || now_ns - start_.lowered_ns < report.rtt_ns) rounds_.restart();
  round_trip_s_ = seconds(std::min(report.rtt_ns, Silence::kStopNs));
  if (start_.pulse.running()) pulse(report, now_ns);
  const auto round = rounds_.take(report, nanoseconds(turn_s()), now_ns);
  if (rounds_.news() && report.delay_known) pace(report, now_ns);
  if (round && rtt_s_ > 0) follow(report, *round, now_ns);
  if (test_.running()) target_bps_ = limit(test_.rate_bps());
  // However little arrives, and whatever is said of it: without datagrams nothing would ever be learnt again.
  target_bps_ =
      std::max(target_bps_, limit(kWindowMinDatagrams * datagram_bits_ / (pipe_s() + DelayBase::kQueueMaxS)));
  rate_bps_ = at_most(start_.pulse.sending() ? start_.pulse.rate_bps() : target_bps_, cap_bps_);
  if (phase_ == Phase::kStart) condition_ = rate_bps_ == cap_bps_ ? Condition::kRunning : Condition::kRamping;
  return rate_bps_;
}

// Between rounds the rate keeps to the window as the queue grows and shrinks.
void AdaptiveRate::pace(const PathReport& report, uint64_t now_ns) {
  if (!base_.known()) return;
  const double share = std::min(1.0, seconds(now_ns - paced_ns_) / kRoundMinS);
  paced_ns_ = now_ns;
  // Where delays are disordered, that of one status says little.
  if (!disorder_.now) queue_s_ += (base_.queue_s(report.delay_min_ns) - queue_s_) * share;
  if (phase_ == Phase::kStart) return overshot();
  if (phase_ != Phase::kRun || test_.running()) return;
  target_bps_ = limit(window_bits_ / (pipe_s() + queue_s_) / (1 - std::min(random_loss_, 0.95)));
}

// Where delays are disordered and much loss was declared, the least delay of a round rises by some
// milliseconds whenever a machine on the way is busy. That is nothing beside such a round trip.
double AdaptiveRate::untold_queue_s() const {
  return expected_loss_ >= Repetition::kLossMin ? kUntold * turn_s() : 0;
}

AdaptiveRate::Sight AdaptiveRate::look(const Round& round) {
  Sight sight{.delivered_bps = round.delivered_bps,
              .loss = round.loss,
              .loss_bound = round.loss_lower_bound(),
              .datagrams = round.datagrams,
              .target_s = target_s(target_bps_)};
  sight.queue_s = base_.queue_s(round.delay_min_ns);
  if (round.disordered)
    sight.queue_s = std::max(0.0, sight.queue_s - kNoises * round.delay_noise_s - untold_queue_s());
  sight.round_trip_s = pipe_s() + sight.queue_s;
  sight.limited = round.sent_bps < 0.8 * std::min(target_bps_, static_cast<double>(rate_bps_));
  return sight;
}

void AdaptiveRate::follow(const PathReport& report, const Round& round, uint64_t now_ns) {
  if (!round.delay_known) return;
  datagram_bits_ = 8 * static_cast<double>(report.datagram_bytes);
  base_.take(round.delay_min_ns, report.rtt_ns, now_ns);
  disorder_.now = round.disordered;
  disorder_.change_s += (round.delay_change_s - disorder_.change_s) / 8;
  const Sight sight = look(round);
  if (phase_ != Phase::kRun || test_.running() || round.disordered || sight.loss_bound > excess(0.02)) {
    depth_.restart(now_ns);
  } else if (const auto own = depth_.take(round, base_.queue_s(round.delay_max_ns), sight.queue_s,
                                          excess(kDepthLoss), now_ns)) {
    random_loss_ = std::max(random_loss_, std::min(kLearntLossMax, *own));
  }
  if (disorder_.now) queue_s_ = sight.queue_s;
  if (test_.running()) {
    test(round, sight, now_ns);
  } else if (phase_ == Phase::kStart) {
    start(sight, now_ns);
  } else if (phase_ == Phase::kDrain) {
    drain(round, sight, now_ns);
  } else {
    if (sight.queue_s > 2 * sight.target_s && sight.delivered_bps < 0.75 * capacity_bps_)
      capacity_bps_ = sight.delivered_bps;
    else if (sight.queue_s > 0.25 * sight.target_s)
      capacity_bps_ = capacity_bps_ > 0 ? (capacity_bps_ + sight.delivered_bps) / 2 : sight.delivered_bps;
    if (now_ns - growth_.empty_ns > kDrainEveryNs && growth_.hold_rounds == 0 && !growth_.to_be_checked &&
        (growth_.calm_rounds <= 0 || sight.limited)) {
      begin_drain(round, sight, now_ns);
    } else {
      run(round, sight, now_ns);
    }
    judge_yield(round, sight);
  }
  const double least_bits =
      std::max(kWindowMinDatagrams * datagram_bits_, kLeastShare * crowd_.most_bps * pipe_s());
  window_bits_ = std::clamp(window_bits_, least_bits,
                            std::max(least_bits, static_cast<double>(cap_bps_) * 1.05 * sight.round_trip_s));
}

void AdaptiveRate::enter_run(double window_bits, uint64_t now_ns) {
  phase_ = Phase::kRun;
  condition_ = Condition::kRunning;
  window_bits_ = window_bits;
  growth_.hold_rounds = 1;
  growth_.empty_ns = now_ns;
  recent_ = {};
}

void AdaptiveRate::test(const Round& round, const Sight& sight, uint64_t now_ns) {
  const auto round_ns = static_cast<uint64_t>(turn_s() * 1e9);
  const double full_bps = test_.full_rate_bps();
  if (sight.limited) {
    test_.abort();
    next_test_ns_ = now_ns + 4 * round_ns;
    return;
  }
  if (sight.queue_s > 3 * sight.target_s + 2e-3) {  // a queue that grows says more than loss
    test_.abort();
    next_test_ns_ = now_ns + 4 * round_ns;
    if (phase_ == Phase::kStart) enter_run(0.9 * sight.delivered_bps * sight.round_trip_s, now_ns);
    return;
  }
  LossTrial::Finding verdict = test_.take(round);
  if (verdict == LossTrial::Finding::kRandom && phase_ == Phase::kStart &&
      test_.misses(start_.suspect_loss, start_.suspect_datagrams, random_loss_))
    verdict = LossTrial::Finding::kCongestive;
  switch (verdict) {
    case LossTrial::Finding::kRunning:
      return;
    case LossTrial::Finding::kCongestive:
      // What was known of the path, as far as the lower rate lost it, too.
      random_loss_ = std::max(expected_loss_, std::min(random_loss_, test_.low_loss_bound()));
      capacity_bps_ = sight.delivered_bps;
      next_test_ns_ = now_ns + 5 * round_ns;
      // What is lost at the start says little of what the path carries.
      if (phase_ == Phase::kRun && sight.queue_s < sight.target_s)
        ceiling_.touch(sight.delivered_bps * sight.round_trip_s, now_ns);
      enter_run(0.85 * sight.delivered_bps * sight.round_trip_s, now_ns);
      growth_.calm_rounds = -6;
      growth_.accelerations = 0;
      return;
    case LossTrial::Finding::kRandom:
      random_loss_ = std::max(expected_loss_, std::min(kLearntLossMax, test_.loss()));
      next_test_ns_ = now_ns + std::max(kTestEveryNs, 30 * round_ns);
      recent_ = {};  // what was lost before says nothing of what was learnt
      if (phase_ == Phase::kRun) {
        window_bits_ = full_bps * (1 - random_loss_) * sight.round_trip_s;
      } else {
        target_bps_ = full_bps;
        start_.best_bps = 0;
        start_.flat_rounds = 0;
      }
      return;
  }
}

void AdaptiveRate::run(const Round& round, const Sight& sight, uint64_t now_ns) {
  if (growth_.hold_rounds > 0) {
    --growth_.hold_rounds;
    return;
  }
  if (growth_.to_be_checked && !sight.limited) {
    growth_.to_be_checked = false;
    const double step = window_bits_ / growth_.window_before - 1;
    const double noise = 1.5 / std::sqrt(std::max(1.0, sight.datagrams));  // of few datagrams
    if (sight.delivered_bps <
        growth_.delivered_before * (1 + 0.35 * step - noise)) {  // it only made the queue longer, or the loss
      const double fits = sight.delivered_bps * (pipe_s() + 0.5 * sight.target_s);
      window_bits_ = std::min(window_bits_, std::max(fits, growth_.window_before));
      capacity_bps_ = std::max(capacity_bps_, sight.delivered_bps);
      // Where there is a queue, it tells by itself when there is room again.
      growth_.calm_rounds = sight.queue_s > 0.5 * sight.target_s ? 0 : -10;
      growth_.accelerations = 0;
      growth_.hold_rounds = 1;
      return;
    }
  }
  growth_.to_be_checked = false;
  // As much is lost below the ceiling, or a queue shows: it was none.
  if (sight.loss_bound > excess(0.01) || sight.queue_s > sight.target_s) ceiling_.forget();
  const bool much = sight.loss_bound > excess(0.02);
  // On a short path rounds have few datagrams. There much must be lost, well below what the path carried.
  const bool suspect = sight.datagrams > kTrialDatagrams
                           ? sight.loss_bound > excess(0.01) && sight.queue_s < 2 * sight.target_s
                           : much && turn_s() <= kRoundMinS && sight.queue_s < 0.25 * sight.target_s &&
                                 sight.delivered_bps < 0.75 * capacity_bps_;
  if (suspect && now_ns >= next_test_ns_ && !sight.limited) return test_.begin(target_bps_);
  if (much) {
    window_bits_ = 0.85 * sight.delivered_bps * sight.round_trip_s;
    growth_.calm_rounds = growth_.accelerations = 0;
    growth_.hold_rounds = 1;
    return;
  }
  unlearn(round);
  if (sight.queue_s > 2 * sight.target_s) {
    const double fits = capacity_bps_ * (pipe_s() + sight.target_s);
    window_bits_ = 0.98 * std::min(window_bits_, std::max(window_bits_ / 2, fits));
    growth_.calm_rounds = growth_.accelerations = 0;
    growth_.hold_rounds = 1;
    return;
  }
  const double limit_bits = ceiling_.limit_bits(now_ns);
  if (window_bits_ >= limit_bits) {
    window_bits_ = limit_bits;
    if (sight.queue_s < 0.5 * sight.target_s) growth_.empty_ns = now_ns;
    growth_.calm_rounds = growth_.accelerations = 0;
    return;
  }
  if (!sight.limited) grow(sight, now_ns);
  window_bits_ = std::min(window_bits_, limit_bits);
}

// Of one round little can be said: what it lacks may have come with the next status.
void AdaptiveRate::unlearn(const Round& round) {
  recent_.count.add(round);
  recent_.statuses += round.statuses;
  if (recent_.statuses < kRecentStatuses) return;
  const double loss = recent_.count.loss();
  const double noise = 3 * std::sqrt(random_loss_ / std::max(1.0, recent_.count.datagrams));
  if (loss + noise < random_loss_) random_loss_ = std::max(expected_loss_, 0.3 * random_loss_ + 0.7 * loss);
  recent_ = {};
}

void AdaptiveRate::grow(const Sight& sight, uint64_t now_ns) {
  const double pull = 0.5 * (sight.target_s - sight.queue_s) / sight.round_trip_s;
  const bool lossy = sight.loss_bound > 0 && sight.loss - random_loss_ > 0.3 * random_loss_ &&
                     sight.loss_bound > random_loss_;
  // The round's is the least, and what was done last may only show at its end.
  if (std::max(queue_s_, sight.queue_s) >= 0.5 * sight.target_s || lossy) {
    if (growth_.accelerations > 0) {
      capacity_bps_ = std::max(capacity_bps_, sight.delivered_bps);
      window_bits_ = std::min(window_bits_, capacity_bps_ * (pipe_s() + sight.target_s));
    }
    growth_.accelerations = growth_.calm_rounds = 0;
    window_bits_ *= 1 + std::clamp(pull, -0.1, 0.03);
    return;
  }
  growth_.calm_rounds = std::min(growth_.calm_rounds + 1, kCalmRounds);
  if (growth_.calm_rounds < kCalmRounds) {
    window_bits_ += std::max(window_bits_ * std::min(0.02, pull), datagram_bits_);
    return;
  }
  growth_.empty_ns = now_ns;
  growth_.window_before = window_bits_;
  growth_.delivered_before = sight.delivered_bps;
  growth_.to_be_checked = true;
  const size_t most = ceiling_.found_lately(now_ns) ? kCarefulStep : kSteps.size() - 1;
  window_bits_ *= 1 + kSteps[std::min(most, growth_.accelerations)];
  growth_.accelerations = std::min(kSteps.size(), growth_.accelerations + 1);
  growth_.hold_rounds = 1;
}

// The base is only true if the queue is empty now and then.
void AdaptiveRate::begin_drain(const Round& round, const Sight& sight, uint64_t now_ns) {
  if (sight.queue_s <= 0.25 * sight.target_s) capacity_bps_ = sight.delivered_bps;
  phase_ = Phase::kDrain;
  drain_.began_ns = now_ns;
  drain_.delay_ns = round.delay_min_ns;
  target_bps_ *= 0.5;
  growth_.calm_rounds = -2;
}

void AdaptiveRate::drain(const Round& round, const Sight& sight, uint64_t now_ns) {
  const double elapsed_s = seconds(now_ns - drain_.began_ns);
  if (elapsed_s <= turn_s()) return;
  const bool falls =
      static_cast<double>(drain_.delay_ns) - static_cast<double>(round.delay_min_ns) > kFallsNs;
  drain_.delay_ns = std::min(drain_.delay_ns, round.delay_min_ns);
  if (falls && elapsed_s <= 0.6 + 2 * turn_s()) return;
  base_.set(drain_.delay_ns, now_ns);
  enter_run(capacity_bps_ * (pipe_s() + sight.target_s), now_ns);
}

// Somebody else keeps the queue longer than this law ever would, whatever is yielded.
void AdaptiveRate::judge_yield(const Round& round, const Sight& sight) {
  crowd_.most_bps = std::max(crowd_.most_bps, sight.delivered_bps);
  const double share = std::min(1.0, seconds(round.duration_ns) / kCrowdS);
  crowd_.queue_s += (sight.queue_s - crowd_.queue_s) * share;
  const double brink = condition_ == Condition::kYieldingToOthers ? kCrowdLeaves : 1;
  condition_ = crowd_.queue_s > brink * kCrowdTargets * target_s(crowd_.most_bps)
                   ? Condition::kYieldingToOthers
                   : Condition::kRunning;
}

}  // namespace sluice::rate
