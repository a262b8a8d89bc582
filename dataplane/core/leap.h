// Whether a sender has really come as far as one datagram says.
//
// Pure; one owner. A datagram that names a number far ahead of all others would move the window of received
// numbers, and every true one would be too old. So a leap is believed when a second datagram agrees with the
// first, as in RFC 3550 A.1. What an honest sender loses by that is one chunk after a hole of more than kLeap
// numbers; it is repeated like any other loss.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace sluice {

class Leap {
 public:
  // So far ahead one datagram alone is believed.
  static constexpr uint64_t kLeap = 256;
  // So close together two datagrams agree.
  static constexpr uint64_t kAgreement = 1U << 14;

  // `known_end`: 1 + the highest number known to have been sent. `end`: the same, as a datagram says that was
  // sent at `send_time_ns`. A copy of a datagram is no second one.
  bool believes(uint64_t known_end, uint64_t end, uint64_t send_time_ns) {
    if (end <= known_end || end - known_end <= kLeap) return true;
    const uint64_t apart = end > said_end_ ? end - said_end_ : said_end_ - end;
    const bool copy = end == said_end_ && send_time_ns == said_time_ns_;
    const bool agrees = said_end_ > known_end && apart <= kAgreement && !copy;
    said_end_ = end;
    said_time_ns_ = send_time_ns;
    return agrees;
  }

 private:
  uint64_t said_end_ = 0;  // by the last datagram that was not believed at once; 0: none
  uint64_t said_time_ns_ = 0;
};

}  // namespace sluice
