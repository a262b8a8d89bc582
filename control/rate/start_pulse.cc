// SPDX-License-Identifier: Apache-2.0
#include "control/rate/start_pulse.h"

namespace sluice::rate {
namespace {

constexpr double kWhole = 0.6;         // delays differ by themselves, and some is lost by chance
constexpr double kSlackS = 2e-3;       // by which looks at what was sent may be late
constexpr uint64_t kTooLongTimes = 4;  // of its length: the source has nothing to send
// In lengths of the pulse. A queue that grows by more does not do so by chance, and a path that carries a
// quarter of the pulse has a shorter one.
constexpr double kLongQueueTimes = 4;

}  // namespace

void StartPulse::begin(double rate_bps, uint64_t sent) {
  *this = {};
  phase_ = Phase::kSending;
  rate_bps_ = rate_bps;
  first_ = sent;
}

void StartPulse::take(const PathReport& report, bool news, uint64_t now_ns) {
  if (phase_ == Phase::kSending) send(report, now_ns);
  if (news && running()) hear(report);
}

void StartPulse::send(const PathReport& report, uint64_t now_ns) {
  const uint64_t sent = report.sent - std::min(report.sent, first_);
  if (idle_ns_ == 0 || sent == 0) idle_ns_ = now_ns;
  if (sent == 0) return;
  const double due_s = static_cast<double>(sent) * 8 * report.datagram_bytes / rate_bps_;
  const uint64_t passed_ns = now_ns - std::min(now_ns, idle_ns_);
  if (due_s * 1e9 < kLengthNs && passed_ns < kTooLongTimes * kLengthNs) return;
  end_ = report.sent;
  length_s_ = std::max(due_s, static_cast<double>(passed_ns) * 1e-9 - kSlackS);
  rate_bps_ *= due_s / length_s_;
  phase_ = Phase::kAwaited;
}

void StartPulse::hear(const PathReport& report) {
  const auto delay_ns = static_cast<double>(report.delay_min_ns);
  if (report.delay_known) delay_least_ns_ = std::min(delay_least_ns_, delay_ns);
  if (report.received_end <= first_) {
    received_ = report.received;
    received_end_ = report.received_end;
    return;
  }
  if (report.delay_known) delay_most_ns_ = std::max(delay_most_ns_, delay_ns);
  if (phase_ == Phase::kAwaited && report.received_end < end_ && reported_ > 0 &&
      grew_s() > kLongQueueTimes * length_s_) {
    // By so much grew the delay until the first datagram of this status: those before it are the ones to
    // count.
    length_s_ *= static_cast<double>(reported_) / static_cast<double>(end_ - received_end_);
    phase_ = Phase::kReported;
    return;
  }
  arrived_ = report.received - std::min(report.received, received_);
  reported_ = report.received_end - received_end_;
  if (phase_ == Phase::kAwaited && report.received_end >= end_) phase_ = Phase::kReported;
}

std::optional<StartPulse::Outcome> StartPulse::outcome() {
  if (phase_ != Phase::kReported) return std::nullopt;
  phase_ = Phase::kNone;
  const double came =
      std::min(1.0, static_cast<double>(arrived_) / static_cast<double>(std::max<uint64_t>(1, reported_)));
  const double share = came * length_s_ / (length_s_ + grew_s());
  return Outcome{.carried_bps = rate_bps_ * share, .whole = share > kWhole};
}

}  // namespace sluice::rate
