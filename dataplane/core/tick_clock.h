// The system's monotonic time, told from a CPU's tick counter, and compared with the system's clock as long
// as it runs.
//
// Pure: readings of both clocks are arguments; one owner. Whoever wants the time reads the counter and calls
// at(); now and then, and for each leap of the counter, at() wants the system's clock read as well, and
// learn() told. So no reading and no rate that was wrong once stays so: no time is given that lies more than
// kAskNs beyond the last comparison. The time never runs backwards.
//
// Until two estimates of the counter's rate agree, and again after the two clocks have parted (a virtual
// machine that moved to another host, a counter that stops or jumps), every time comes from the system's
// clock. Small differences are corrected by running a little faster or slower.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

namespace sluice {

class TickClock {
 public:
  // Both clocks at one moment. The system's was read before and after the counter, `gap_ns` apart; `ns` is
  // the middle. A thread that lost its core in between has a large gap.
  struct Pair {
    uint64_t ns = 0;
    uint64_t ticks = 0;
    uint64_t gap_ns = 0;
  };
  static constexpr uint64_t kAskNs = 1'000'000;  // the clocks are compared so often
  static constexpr uint32_t kAskTurns = 1024;    // or after so many times: a counter may stand still
  static constexpr uint64_t kGapNsMax = 20'000;  // a pair beyond it corrects nothing
  static constexpr uint64_t kWindowNs = 10'000'000;
  static constexpr uint64_t kWindowGaps =
      10'000;                                   // a window is so many gaps long: its rate is good to 100 ppm
  static constexpr uint64_t kAgreePart = 5000;  // two rates agree within 200 ppm
  static constexpr uint64_t kDriftPart = 1000;  // a clock that is being set may run 500 ppm faster or slower
  static constexpr uint64_t kPartNs = 20'000;   // more than drift and gap explain: the clocks have parted
  static constexpr uint64_t kSlewNs = 10'000'000;      // a difference is made up for in about this time
  static constexpr uint64_t kBaseNs = 1'000'000'000;   // the rate is taken over half of it to all of it
  static constexpr uint64_t kDoubtNs = 1'000'000'000;  // the counter is not used for so long after a parting,
  static constexpr uint64_t kDoubtNsMax = 3600 * kBaseNs;  // each time twice as long

  // Nothing: the system's clock is to be read, and learn() told.
  std::optional<uint64_t> at(uint64_t ticks) {
    if (!counts_ || ++turns_ > kAskTurns || ticks < base_ticks_) return std::nullopt;
    const uint64_t ns = ns_at(ticks);
    if (ns - base_ns_ > kAskNs) return std::nullopt;
    return last_ns_ = std::max(last_ns_, ns);
  }

  // Returns the time.
  uint64_t learn(const Pair& pair) {
    turns_ = 0;
    last_ns_ = std::max(last_ns_, counts_ ? compare(pair) : estimate(pair));
    return last_ns_;
  }

  // True: times come from the counter.
  bool counts() const { return counts_; }
  // How often the clocks turned out to differ by more than both explain.
  uint64_t partings() const { return partings_; }

 private:
  static constexpr uint64_t magnitude(int64_t value) {
    return value < 0 ? uint64_t{0} - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  }
  uint64_t ns_at(uint64_t ticks) const {
    return base_ns_ + static_cast<uint64_t>((static_cast<__uint128_t>(ticks - base_ticks_) * run_fp_) >> 32);
  }
  // Nanoseconds per tick, 32.32; 0: the counter did not move, or went back.
  static uint64_t rate_between(const Pair& from, const Pair& to) {
    if (to.ticks <= from.ticks || to.ns <= from.ns) return 0;
    return static_cast<uint64_t>((static_cast<__uint128_t>(to.ns - from.ns) << 32) / (to.ticks - from.ticks));
  }

  // ---- while times come from the system's clock ----

  uint64_t estimate(const Pair& pair) {
    if (pair.gap_ns > kGapNsMax) return pair.ns;
    if (!begun_) {
      begun_ = true;
      from_ = pair;
      estimated_fp_ = 0;
    } else if (pair.ns - from_.ns >= std::max(kWindowNs, kWindowGaps * (from_.gap_ns + pair.gap_ns))) {
      const uint64_t rate_fp = rate_between(from_, pair);
      const auto apart_fp = magnitude(static_cast<int64_t>(rate_fp - estimated_fp_));
      if (rate_fp != 0 && apart_fp <= rate_fp / kAgreePart && pair.ns >= doubted_until_ns_)
        begin_to_count(pair, rate_fp);
      from_ = pair;
      estimated_fp_ = rate_fp;
    }
    return pair.ns;
  }

  void begin_to_count(const Pair& pair, uint64_t rate_fp) {
    counts_ = true;
    base_ns_ = pair.ns;
    base_ticks_ = pair.ticks;
    rate_fp_ = run_fp_ = rate_fp;
    anchor_ = middle_ = pair;
  }

  // ---- while they come from the counter ----

  uint64_t compare(const Pair& pair) {
    if (pair.ticks < base_ticks_) return part(pair);
    const uint64_t ns = ns_at(pair.ticks);
    const auto behind_ns = static_cast<int64_t>(pair.ns - ns);
    const uint64_t passed_ns = pair.ns - std::min(pair.ns, base_ns_);
    if (magnitude(behind_ns) > kPartNs + pair.gap_ns / 2 + passed_ns / kDriftPart) return part(pair);
    base_ns_ = ns;
    base_ticks_ = pair.ticks;
    if (pair.gap_ns <= kGapNsMax) correct(pair, behind_ns);
    return base_ns_;
  }

  void correct(const Pair& pair, int64_t behind_ns) {
    if (pair.ns - anchor_.ns >= kBaseNs / 2) {
      if (const uint64_t rate_fp = rate_between(anchor_, pair); rate_fp != 0) rate_fp_ = rate_fp;
    }
    if (pair.ns - middle_.ns >= kBaseNs / 2) {
      anchor_ = middle_;
      middle_ = pair;
    }
    // Ahead is nowhere to step to, as time does not run backwards; after a long sleep it may be behind.
    if (behind_ns > static_cast<int64_t>(kPartNs)) {
      base_ns_ = pair.ns;
      behind_ns = 0;
    }
    constexpr auto kMost = static_cast<int64_t>(kSlewNs / kDriftPart);
    const int64_t slewed_ns = std::clamp(behind_ns, -kMost, kMost);
    const __int128_t slew_fp = static_cast<__int128_t>(rate_fp_) * slewed_ns / static_cast<int64_t>(kSlewNs);
    run_fp_ = static_cast<uint64_t>(static_cast<__int128_t>(rate_fp_) + slew_fp);
  }

  uint64_t part(const Pair& pair) {
    ++partings_;
    counts_ = begun_ = false;
    doubted_until_ns_ = pair.ns + doubt_ns_;
    doubt_ns_ = std::min(2 * doubt_ns_, kDoubtNsMax);
    return estimate(pair);
  }

  bool counts_ = false;
  uint32_t turns_ = 0;    // since the last comparison
  uint64_t base_ns_ = 0;  // the last comparison
  uint64_t base_ticks_ = 0;
  uint64_t run_fp_ = 0;   // rate_fp_, and what makes up for the difference
  uint64_t last_ns_ = 0;  // the newest time that was given
  uint64_t rate_fp_ = 0;
  Pair anchor_;         // the rate is taken from here: half a second to one ago
  Pair middle_;         // the next anchor
  bool begun_ = false;  // from_ is there
  Pair from_;
  uint64_t estimated_fp_ = 0;
  uint64_t partings_ = 0;
  uint64_t doubted_until_ns_ = 0;
  uint64_t doubt_ns_ = kDoubtNs;
};

// The best of a few readings of both clocks: the one whose two times of the system's clock lie closest
// together. One that is about as close as any before is good enough (`least_gap_ns`).
template <typename ReadNs, typename ReadTicks>
TickClock::Pair closest_pair(ReadNs&& read_ns, ReadTicks&& read_ticks, uint64_t* least_gap_ns) {
  constexpr int kTries = 4;
  TickClock::Pair best{.ns = 0, .ticks = 0, .gap_ns = UINT64_MAX};
  for (int i = 0; i < kTries && best.gap_ns > 2 * *least_gap_ns; ++i) {
    const uint64_t before_ns = read_ns();
    const uint64_t ticks = read_ticks();
    const uint64_t gap_ns = read_ns() - before_ns;
    if (gap_ns >= best.gap_ns) continue;
    best = {.ns = before_ns + gap_ns / 2, .ticks = ticks, .gap_ns = gap_ns};
  }
  *least_gap_ns = std::min(*least_gap_ns, best.gap_ns);
  return best;
}

}  // namespace sluice
