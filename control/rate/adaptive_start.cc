// How `adaptive` begins.
//
// Pulses (start_pulse.h) say what the path carries, each four times the rate before, until one comes through
// in part only, however little that is. From then on, and where pulses say nothing, the rate grows from round
// to round until the queue shows or what arrives has stopped growing.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "control/rate/adaptive_rate.h"
#include "dataplane/core/repetition.h"

namespace sluice::rate {
namespace {

constexpr double kStartDatagrams = 40;  // of a round trip, at the beginning
constexpr double kStartDatagramBits = 8.0 * 8192;
constexpr double kStartRttS = 0.02;
constexpr double kPulseTimes = 4;      // of the rate, a pulse has
constexpr double kPulsesRttS = 10e-3;  // on shorter paths a round is no longer than a pulse
constexpr double kMore = 1.1;          // than the rate: worth a change
// A path that seems to carry less of the rate than this loses for another reason: its datagrams are too long,
// or it is cut.
constexpr double kCarriesLeast = 1.0 / 64;
constexpr double kDrains = 0.95;       // of what was carried, so that the pulse's queue drains
constexpr double kDoubled = 2;         // from round to round
constexpr double kFoundGrowth = 1.25;  // the same, once a pulse has found the rate
constexpr double kFoundTimes = 1.5;    // of what it found: more arrives only if a busy machine had misled it
constexpr double kGrew = 0.25;         // of that: it did grow
constexpr int kFlatRounds = 3;
// So long an operator's word for much loss (repetition.h) keeps what is late apart from what is lost.
constexpr uint64_t kUnfoldNs = 1'000'000'000;

}  // namespace

AdaptiveRate::AdaptiveRate(uint64_t cap_bps, double expected_loss, uint64_t now_ns)
    : Controller(cap_bps, at_most(kStartDatagrams * kStartDatagramBits / kStartRttS, cap_bps)),
      expected_loss_(std::clamp(expected_loss, 0.0, 0.95)),
      silence_(now_ns),
      target_bps_(static_cast<double>(rate_bps_)),
      random_loss_(expected_loss_),
      paced_ns_(now_ns) {
  growth_.empty_ns = now_ns;
  if (rate_bps_ == cap_bps_) condition_ = Condition::kRunning;
  // Where so much is lost, delays tell little of a few milliseconds.
  if (rate_bps_ == cap_bps_ || expected_loss_ >= Repetition::kLossMin) return;
  start_.pulse.begin(limit(kPulseTimes * target_bps_), 0);
  rate_bps_ = at_most(start_.pulse.rate_bps(), cap_bps_);
}

// Rounds are not taken meanwhile: they would be those of the rate before.
void AdaptiveRate::pulse(const PathReport& report, uint64_t now_ns) {
  StartPulse& pulse = start_.pulse;
  const bool news = report.statuses != rounds_.statuses();
  if (news && report.delay_known) base_.take(report.delay_min_ns, report.rtt_ns, now_ns);
  pulse.take(report, news, now_ns);
  rounds_.restart();
  const std::optional<StartPulse::Outcome> outcome = pulse.outcome();
  if (!outcome) return;
  const bool more = outcome->carried_bps > kMore * target_bps_;
  // On a short path a round says so as soon, and what was sent too much keeps its link busy.
  const bool less = !outcome->whole && outcome->carried_bps < target_bps_ && rtt_s_ > kPulsesRttS &&
                    outcome->carried_bps > kCarriesLeast * target_bps_;
  if (!more && !less) return;
  if (less) start_.lowered_ns = now_ns;  // no round until a round trip later, with the queue that grows still
  target_bps_ = limit(kDrains * outcome->carried_bps);
  if (outcome->whole && rtt_s_ > kPulsesRttS && target_bps_ < static_cast<double>(cap_bps_))
    return pulse.begin(limit(kPulseTimes * target_bps_), report.sent);
  if (!outcome->whole) start_.found_bps = outcome->carried_bps;
  start_.held = true;
  // What comes until then was sent at the rate before.
  quiet_until_ns_ = now_ns + static_cast<uint64_t>(turn_s() * 1e9);
}

// Few statuses do not tell of disorder; where so much is lost it is assumed.
bool AdaptiveRate::disordered() const { return disorder_.now || expected_loss_ >= Repetition::kLossMin; }

// Rounds are as long as a round trip, and that is long where delays are disordered. A queue hides there, but
// much loss was declared, too, so what is sent too much costs little more.
double AdaptiveRate::growth_a_round() const {
  if (disorder_.now && expected_loss_ >= Repetition::kLossMin) return kPulseTimes;
  const bool near = start_.best_bps < kFoundTimes * start_.found_bps;
  return near && !disordered() ? kFoundGrowth : kDoubled;
}

// The rate has grown beyond what the path carries, and the round that will say so goes on for a while.
void AdaptiveRate::overshot() {
  if (!start_.judged || start_.held || test_.running()) return;  // a round tells of disorder
  if (queue_s_ <= target_s(target_bps_)) return;
  start_.held = true;
  target_bps_ /= 2;
  if (disordered()) return;
  start_.overshot = true;
  rounds_.restart();  // all of the next one shows the queue
}

void AdaptiveRate::start(const Sight& sight, uint64_t now_ns) {
  start_.judged = true;
  const bool suspect =
      sight.loss_bound > excess(0.01) && sight.queue_s < sight.target_s && sight.datagrams > kTrialDatagrams;
  if (!suspect) {
    start_.suspect_ns = UINT64_MAX;
  } else {
    start_.suspect_ns = std::min(start_.suspect_ns, now_ns);
    // Where delays differ much the fast datagrams come first, and the others look lost until they come.
    if (expected_loss_ >= Repetition::kLossMin && now_ns - start_.suspect_ns < kUnfoldNs) return;
    // At the rate that arrived: if the path is full, the loss is gone then.
    start_.suspect_loss = sight.loss;
    start_.suspect_datagrams = sight.datagrams;
    return test_.begin(limit(sight.delivered_bps / (1 - std::min(random_loss_, 0.95))),
                       LossTrial::kSureDeviations, disordered() ? 0 : sight.loss);
  }
  if (sight.loss_bound <= excess(0.01)) random_loss_ = std::max(random_loss_, std::min(0.01, sight.loss));
  const double growth = growth_a_round();
  if (sight.delivered_bps > (1 + kGrew * (std::min(growth, kDoubled) - 1)) * start_.best_bps) {
    start_.best_bps = sight.delivered_bps;
    start_.flat_rounds = 0;
  } else if (!sight.limited) {
    ++start_.flat_rounds;
  }
  // A round that began with a queue has that queue, which had just shown, as its least.
  const bool overshot = std::exchange(start_.overshot, false);
  const bool held = std::exchange(start_.held, false);
  if (sight.queue_s > (overshot ? 0.5 : 1) * sight.target_s || start_.flat_rounds >= kFlatRounds) {
    capacity_bps_ = sight.delivered_bps;
    next_test_ns_ = now_ns + static_cast<uint64_t>((disordered() ? 10 : 1) * turn_s() * 1e9);
    return enter_run(0.95 * sight.delivered_bps * sight.round_trip_s, now_ns);
  }
  if (overshot) target_bps_ = limit(2 * target_bps_);  // the queue is gone: it was none of ours
  if (!sight.limited && !held) target_bps_ = limit(growth * target_bps_);
}

}  // namespace sluice::rate
