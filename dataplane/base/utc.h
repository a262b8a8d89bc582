// Moments as logs, records and errors write them. RFC 3339, in UTC.
//
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace sluice::base {

// "2026-11-22T18:00:00Z"; nanoseconds since 1970.
std::string utc_text(int64_t unix_ns);
// "2026-11-22T18:00:00.123456Z"
std::string utc_text_us(int64_t unix_ns);

}  // namespace sluice::base
