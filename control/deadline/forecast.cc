// SPDX-License-Identifier: Apache-2.0
#include "control/deadline/forecast.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "dataplane/base/utc.h"

namespace sluice::deadline {
namespace {

using Answer = Forecast::Answer;

constexpr int64_t kSecondNs = 1'000'000'000;

// The later of what the cap and what the measured speed allow.
std::optional<double> earliest(const Question& question, double more_s) {
  const double bits = 8 * static_cast<double>(question.bytes_left);
  const double by_cap_s = (question.cap_bps > 0 ? bits / question.cap_bps : 0) + question.besides_s;
  if (!question.speed || question.speed->at_least) return by_cap_s + more_s;
  const auto by_speed_s =
      seconds_for(*question.speed, bits + more_s * question.speed->mean_bps, kOfferedChance);
  if (!by_speed_s) return std::nullopt;
  return std::max(by_cap_s + more_s, *by_speed_s + question.besides_s);
}

std::string_view limit_text(Limit limit) {
  switch (limit) {
    case Limit::kCap:
      return "what the session may send (--rate, [port] rate of both nodes, session limit) is";
    case Limit::kPath:
      return "the path was measured to carry";
    case Limit::kSourceDisk:
      return "the source's disk was measured to give";
    case Limit::kDestinationDisk:
      return "the destination's disk was measured to take";
    case Limit::kQueue:
      break;
  }
  return "sessions that run or come first take their part of";
}

}  // namespace

Forecast judge(const Question& question) {
  const double bits = 8 * static_cast<double>(question.bytes_left);
  const double seconds = question.seconds_left - question.besides_s;
  Forecast forecast{.answer = Answer::kKept, .needed_bps = seconds > 0 ? bits / seconds : INFINITY};
  if (question.bytes_left == 0 && question.seconds_left >= 0) return forecast;
  const auto refused = [&](Limit limit, double have_bps, double more_s) {
    forecast.answer = Answer::kRefused;
    forecast.limit = limit;
    forecast.have_bps = have_bps;
    forecast.earliest_s = earliest(question, more_s);
    return forecast;
  };
  if (question.cap_bps < forecast.needed_bps) return refused(Limit::kCap, question.cap_bps, 0);
  if (!question.speed) {
    forecast.answer = Answer::kUnknown;
    return forecast;
  }
  const Speed& speed = *question.speed;
  const double ahead_s = question.ahead_s.value_or(0);
  const bool alone = chance(speed, bits, seconds) >= kAdmittedChance;
  if (alone && chance(speed, bits + ahead_s * speed.mean_bps, seconds) >= kAdmittedChance) return forecast;
  if (speed.at_least) {
    forecast.answer = Answer::kUnknown;
    return forecast;
  }
  return refused(alone ? Limit::kQueue : speed.limit, speed.mean_bps, alone ? ahead_s : 0);
}

Error refusal(const Forecast& forecast, const Question& question, int64_t deadline_unix_ns,
              int64_t unix_now_ns) {
  std::string offer = "no time can be named that would be";
  constexpr double kYearS = 366.0 * 86400;
  if (forecast.earliest_s && *forecast.earliest_s < kYearS) {
    const auto later_ns = static_cast<int64_t>(std::ceil(*forecast.earliest_s) + 1) * kSecondNs;
    offer = base::utc_text(unix_now_ns + later_ns) + " could be";
  }
  std::string why = "it is over";
  if (question.seconds_left > 0) {
    const double moving_s = question.seconds_left - question.besides_s;
    why = fmt::format("{} bytes in {:.1f} s need {:.3f} Mbit/s, and {} {:.3f} Mbit/s", question.bytes_left,
                      moving_s, forecast.needed_bps * 1e-6, limit_text(forecast.limit),
                      forecast.have_bps * 1e-6);
    if (moving_s <= 0) {
      why = fmt::format("sessions to this peer took {:.1f} s to begin and to end, and {:.1f} s are left",
                        question.besides_s, question.seconds_left);
    }
  }
  return {ErrorCode::kDeadline,
          fmt::format("the deadline {} cannot be kept: {}; {}: give a later one, or '--deadline-policy warn'",
                      base::utc_text(deadline_unix_ns), why, offer)};
}

}  // namespace sluice::deadline
