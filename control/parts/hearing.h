// Whether a source is still heard of, on its stream or its path, and so whether it is worth waiting for.
//
// Pure; time is an argument. A source says a heartbeat each second while its stream is there, whatever it
// does meanwhile, and its bytes count as well. Who is not heard of for two of them and three round trips is
// not waited for at the end: its cable is cut, or its process stands still. One heartbeat is enough where it
// has not brought what it was asked for either. Only time in which somebody looked counts: a process that
// stood still does not blame its peers for it. A stream that is down for a second is enough, since nobody can
// answer on it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace sluice::parts {

class Hearing {
 public:
  static constexpr uint64_t kQuietNs = 2'000'000'000;  // at least: it is longer where the round trip is
  static constexpr uint64_t kDownNs = 1'000'000'000;
  static constexpr uint64_t kLookNs = 250'000'000;  // one look stands for no more time

  // `mark` changes with all that is heard: payload bytes, and when a word came last. `up`: its stream is
  // there.
  void look(uint64_t mark, bool up, uint64_t now_ns) {
    const uint64_t passed_ns = looked_ns_ == 0 ? 0 : std::min(now_ns - std::min(now_ns, looked_ns_), kLookNs);
    looked_ns_ = std::max(looked_ns_, now_ns);
    quiet_ns_ = std::exchange(mark_, mark) == mark ? quiet_ns_ + passed_ns : 0;
    down_ns_ = up ? 0 : down_ns_ + passed_ns;
  }
  // `silent`: it has brought nothing of what it was asked for, so one heartbeat that is missing is enough.
  bool lost(uint64_t rtt_ns, bool silent) const {
    return down_ns_ >= kDownNs || quiet_ns_ >= (silent ? kQuietNs / 2 : kQuietNs) + 3 * rtt_ns;
  }

 private:
  uint64_t mark_ = 0;
  uint64_t looked_ns_ = 0;
  uint64_t quiet_ns_ = 0;  // since something was heard, as long as somebody looked
  uint64_t down_ns_ = 0;   // likewise, since its stream was lost
};

}  // namespace sluice::parts
