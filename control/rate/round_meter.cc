// SPDX-License-Identifier: Apache-2.0
#include "control/rate/round_meter.h"

#include <algorithm>
#include <cmath>

namespace sluice::rate {
namespace {

constexpr double kQueueChangeS = 2e-3;
constexpr double kQueueSpreadS = 10e-3;

// What a stranger says may be anything.
int64_t later(int64_t ns, uint64_t by_ns) {
  const auto room = static_cast<uint64_t>(INT64_MAX) - static_cast<uint64_t>(ns);
  return by_ns < room ? static_cast<int64_t>(static_cast<uint64_t>(ns) + by_ns) : INT64_MAX;
}

}  // namespace

double loss_lower_bound(double loss, double datagrams) {
  if (datagrams <= 0) return 0;
  const double n = std::max(1.0, datagrams);
  return loss - 2 * std::sqrt(std::max(loss, 1 / n) / n);
}

void RoundMeter::begin(const PathReport& report, uint64_t now_ns) {
  began_ = true;
  began_ns_ = now_ns;
  sent_ = report.sent;
  received_ = report.received;
  delay_min_ns_ = INT64_MAX;
  delay_max_ns_ = INT64_MIN;
  delays_ = 0;
  heard_ = 0;
  delay_changes_s_ = delay_spreads_s_ = 0;
}

void RoundMeter::note_delay(const PathReport& report) {
  const int64_t delay_ns = report.delay_min_ns;
  if (delays_++ > 0)
    delay_changes_s_ +=
        std::abs(static_cast<double>(delay_ns) - static_cast<double>(delay_before_ns_)) * 1e-9;
  delay_spreads_s_ += static_cast<double>(report.delay_spread_ns) * 1e-9;
  delay_before_ns_ = delay_ns;
  delay_min_ns_ = std::min(delay_min_ns_, delay_ns);
  delay_max_ns_ = std::max(delay_max_ns_, later(delay_ns, report.delay_spread_ns));
}

// A queue changes little from status to status. Within one, since datagrams come out of it in turn, the delay
// cannot grow by more than the time in which they came, nor, since they left in time, fall by much more.
void RoundMeter::judge_disorder(Round& round) const {
  if (delays_ < 2) return;
  const double change_s = delay_changes_s_ / (delays_ - 1);
  const double spread_s = delay_spreads_s_ / delays_;
  const double interval_s = static_cast<double>(round.duration_ns) * 1e-9 / delays_;
  round.disordered = change_s > kQueueChangeS || spread_s > kQueueSpreadS + 2 * interval_s;
  round.delay_change_s = change_s;
  round.delay_noise_s = change_s / delays_;
}

std::optional<Round> RoundMeter::take(const PathReport& report, uint64_t round_ns, uint64_t now_ns) {
  news_ = report.statuses != statuses_;
  if (!news_) return std::nullopt;
  statuses_ = report.statuses;
  const uint64_t missing = report.received_end - std::min(report.received_end, report.received);
  const uint64_t lost = std::max(lost_, std::min(missing, missing_before_));
  missing_before_ = missing;
  if (!began_ || report.received < received_ || report.sent < sent_ || now_ns < began_ns_) {
    lost_ = lost;
    begin(report, now_ns);
    return std::nullopt;
  }
  ++heard_;
  if (report.delay_known) note_delay(report);
  if (now_ns - began_ns_ < std::max<uint64_t>(round_ns, 1)) return std::nullopt;
  Round round{.duration_ns = now_ns - began_ns_,
              .statuses = heard_,
              .delay_min_ns = delay_min_ns_,
              .delay_max_ns = delay_max_ns_,
              .delay_known = delay_min_ns_ != INT64_MAX};
  const double seconds = static_cast<double>(round.duration_ns) * 1e-9;
  const auto received = static_cast<double>(report.received - received_);
  const auto gone = static_cast<double>(lost - lost_);
  const double bits = 8 * static_cast<double>(report.datagram_bytes);
  round.datagrams = received + gone;
  round.loss = round.datagrams > 0 ? gone / round.datagrams : 0;
  round.delivered_bps = received * bits / seconds;
  round.sent_bps = static_cast<double>(report.sent - sent_) * bits / seconds;
  judge_disorder(round);
  lost_ = lost;
  begin(report, now_ns);
  return round;
}

}  // namespace sluice::rate
