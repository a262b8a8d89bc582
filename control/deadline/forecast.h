// Whether a session will keep its deadline, and if not, why not and what it could keep.
//
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "control/deadline/speed.h"
#include "dataplane/base/error.h"
#include "dataplane/base/options/options.h"

namespace sluice::deadline {

using Policy = options::DeadlinePolicy;

// A session is admitted if it will more likely than not be in time. What is offered instead shall be kept.
inline constexpr double kAdmittedChance = 0.5;
inline constexpr double kOfferedChance = 0.9;

struct Question {
  uint64_t bytes_left = 0;
  double seconds_left = 0;
  double besides_s = 0;           // it takes so long besides moving data: to begin, to find its rate, to end
  double cap_bps = 0;             // of data, without headers
  std::optional<Speed> speed;     // that the session has when it is alone; nothing: it was not measured
  std::optional<double> ahead_s;  // so much later it ends because of other sessions
};

struct Forecast {
  enum class Answer : uint8_t { kKept, kUnknown, kRefused };
  Answer answer = Answer::kUnknown;
  Limit limit = Limit::kPath;        // what binds, when it is refused
  double needed_bps = 0;             // to be in time
  double have_bps = 0;               // what the limit allows; kQueue: alone
  std::optional<double> earliest_s;  // from now: what could be kept; nothing: nobody can say
};

Forecast judge(const Question& question);

// kDeadline: what binds, what is needed and what there is, and which deadline could be kept.
Error refusal(const Forecast& forecast, const Question& question, int64_t deadline_unix_ns,
              int64_t unix_now_ns);

}  // namespace sluice::deadline
