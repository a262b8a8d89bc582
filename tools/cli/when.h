// Moments as people write them. Pure, but for the clock and the time zone of the process.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "dataplane/base/error.h"

namespace sluice::cli {

// As --deadline takes it: from now on ("2h30m", "90s", "+45m"), the next time that the clock here shows it
// ("18:00"), or a date and time ("2026-11-22T18:00:00Z", "2026-11-22T18:00+01:00", without a zone the local
// one). Nanoseconds since 1970; kUsage names what is wrong, or that it has passed.
Result<int64_t> parse_when(const std::string& text, int64_t unix_now_ns);

// A moment that has passed, as --since takes it: so long ago ("2h30m", "7d"), the last time that the clock
// here showed it ("18:00"), a date ("2026-11-22"), or a date and time.
Result<int64_t> parse_since(const std::string& text, int64_t unix_now_ns);

// How long something lasts: "2h30m", "90s", "365d". Seconds; kUsage.
Result<int64_t> parse_span(const std::string& text);

int64_t unix_now_ns();

// "Nov 27 18:00"; "Nov 27  2025" where that is half a year away or more. Twelve columns, local time.
std::string format_date(int64_t unix_ns, int64_t unix_now_ns);

// "18:00:00", with the date where it is not today's; local time.
std::string format_when(int64_t unix_ns, int64_t unix_now_ns);

}  // namespace sluice::cli
