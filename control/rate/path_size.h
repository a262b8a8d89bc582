// How long the datagrams may be that a path carries, found on the path itself (after RFC 8899).
//
// Pure. Data begin with the size that both ports can do. Where the path carries less, nothing long arrives,
// and nobody says so: what tells is that the peer answers and the data are missing. Then probes of several
// sizes are sent, each a few times: a ladder of the sizes that links really have, and one between the longest
// of them that came and the next. The probes that came decide; loss that takes all sizes alike decides
// nothing. A queue that overflows takes the first probes, and lets the last ones pass: so the search asks
// once more for what it has found.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control/rate/loss_law.h"
#include "dataplane/core/status.h"

namespace sluice::rate {

// What makes a session's chunks as long as they are.
enum class SizeReason : uint8_t {
  kAgreed,  // ports, configuration, an operator
  kPath,    // it carries no longer ones
  kLoss,    // longer ones are lost more often than they are worth
};
std::string_view size_reason_name(SizeReason reason);  // "agreed", "path", "loss"
// kAgreed for one that is not known.
inline SizeReason size_reason_of(uint32_t value) {
  return value <= static_cast<uint32_t>(SizeReason::kLoss) ? static_cast<SizeReason>(value)
                                                           : SizeReason::kAgreed;
}

// All of a datagram but its chunk: Sluice's header, UDP, IP.
uint32_t datagram_overhead_bytes(bool ip4);
constexpr uint32_t kEthernetBytes = 14 + 24;  // around a datagram: header; preamble, FCS and gap

// What is known of the paths to this node's peers. Forgotten after a while, so that longer ones are tried.
class PathSizes {
 public:
  static constexpr uint64_t kKeptNs = 600'000'000'000;  // RFC 8899, PMTU_RAISE_TIMER

  void set(const std::string& peer, bool ip4, uint32_t chunk_bytes, uint64_t now_ns);
  // The longest chunk that is carried; 0: not known.
  uint32_t chunk_bytes(const std::string& peer, bool ip4, uint64_t now_ns) const;
  // What loss does to datagrams of all lengths; nullptr: it was not measured.
  void set_measured(const std::string& peer, bool ip4, SizeCurve curve, uint64_t now_ns);
  const SizeCurve* measured(const std::string& peer, bool ip4, uint64_t now_ns) const;

 private:
  template <typename What>
  struct Kept {
    What what;
    uint64_t until_ns = 0;
  };
  template <typename What>
  using Memory = std::map<std::pair<std::string, bool>, Kept<What>>;  // by peer and family

  template <typename What>
  static void keep(Memory<What>& memory, const std::string& peer, bool ip4, What what, uint64_t now_ns);
  template <typename What>
  static const What* find(const Memory<What>& memory, const std::string& peer, bool ip4, uint64_t now_ns);

  Memory<uint32_t> carried_;
  Memory<SizeCurve> measured_;
};

// What a lane's flow says; all numbers but the round trip only grow.
struct LaneReading {
  uint64_t sent = 0;      // data, each transmission
  uint64_t arrived = 0;   // of them, as the peer says
  uint64_t statuses = 0;  // of the peer
  uint64_t rtt_ns = 0;    // 0: not known
  uint64_t padded_sent = 0;
  std::array<uint64_t, wire::kPaddedSizesMax> padded_came{};  // chunk bytes << 32, how many
};

struct SizeAsk {  // for so many probes, each as long as a datagram with such a chunk
  uint32_t chunk_bytes = 0;
  uint32_t count = 0;
};

// Probes of some sizes over one lane: asked for, sent, and counted until no more of them come.
class SizeRound {
 public:
  static constexpr uint64_t kUnsentNs = 10'000'000'000;  // for which probes may wait to be sent
  static constexpr uint64_t kPatienceNs = 3'000'000'000;
  static constexpr uint64_t kStandsStillNs = 2'000'000'000;

  // Sizes from the shortest, at most wire::kPaddedSizesMax.
  std::vector<SizeAsk> ask(const std::vector<uint32_t>& sizes, uint32_t each, const LaneReading& reading,
                           uint64_t now_ns);
  bool settled(const LaneReading& reading, uint64_t now_ns);
  // It takes long, and the shortest, which is sent last, has come: of each size at least one was sent.
  bool drags_on(uint64_t now_ns) const {
    return now_ns - asked_ns_ >= kPatienceNs && samples_.front().arrived > 0;
  }
  // Some wait to be sent, and leave one after the other.
  bool sending(uint64_t now_ns) const { return !all_sent() && now_ns - sent_ns_ < kStandsStillNs; }
  const std::vector<SizeSample>& samples() const { return samples_; }

 private:
  bool all_sent() const { return sent_ - sent_before_ >= asked_; }

  std::vector<SizeSample> samples_;
  std::vector<uint64_t> before_;  // that had come already
  uint64_t sent_before_ = 0;
  uint64_t asked_ = 0;
  uint64_t sent_ = 0;  // as it was seen last, and since when
  uint64_t sent_ns_ = 0;
  uint64_t asked_ns_ = 0;
  uint64_t changed_ns_ = 0;
};

// One lane: notices that nothing long arrives, and finds out what does.
class SizeSearch {
 public:
  static constexpr uint32_t kLeastDatagramBytes = 1280;  // every path carries that
  static constexpr uint32_t kEach = 6;                   // probes of one size
  static constexpr uint32_t kEachOnceMore = 2;           // few: a lane may be as slow as 132 kbit/s
  static constexpr uint64_t kWindowNs = 100'000'000;     // a look at what arrived, at least
  static constexpr uint64_t kWindowSent = 8;             // datagrams that say something
  static constexpr uint64_t kPauseNs = 1'000'000'000;    // after a search in vain, at first
  static constexpr uint64_t kPauseMaxNs = 60'000'000'000;

  SizeSearch(uint32_t chunk_bytes, bool ip4);
  std::vector<SizeAsk> step(const LaneReading& reading, uint64_t now_ns);
  // The longest chunk that the path carries, if that is less than what is sent.
  std::optional<uint32_t> found() const { return found_; }
  bool searching() const { return phase_ != Phase::kWatching; }
  // Probes wait until the rate of their lane lets them go.
  bool sending(uint64_t now_ns) const { return searching() && round_.sending(now_ns); }

 private:
  enum class Phase : uint8_t { kWatching, kLadder, kBetween, kOnceMore };

  void watch(const LaneReading& reading, uint64_t now_ns);
  std::vector<SizeAsk> search(Phase phase, const std::vector<uint32_t>& sizes, const LaneReading& reading,
                              uint64_t now_ns);
  std::vector<SizeAsk> judge(const LaneReading& reading, bool closer, uint64_t now_ns);
  std::vector<SizeAsk> ask_once_more(uint32_t carried, const LaneReading& reading, uint64_t now_ns);
  void give_up(const LaneReading& reading, uint64_t now_ns);
  std::vector<uint32_t> ladder() const;

  const uint32_t chunk_bytes_;
  const uint32_t overhead_bytes_;
  Phase phase_ = Phase::kWatching;
  bool suspects_ = false;
  // Two looks back: what left between them should have arrived by now.
  LaneReading before_;
  LaneReading last_;
  uint64_t last_ns_ = 0;
  uint64_t next_search_ns_ = 0;
  uint64_t pause_ns_ = kPauseNs;
  SizeRound round_;
  std::optional<uint32_t> found_;
};

// Which size brings most under the loss of a path: one round over sizes of all lengths.
class SizeMeasure {
 public:
  static constexpr uint32_t kEach = 64;
  static constexpr uint32_t kSizes = 8;

  SizeMeasure(uint32_t chunk_bytes, bool ip4);
  std::vector<SizeAsk> step(const LaneReading& reading, uint64_t now_ns);
  bool over() const { return over_; }
  // Nothing: the peer counts no such probes, or the path does not carry what is sent.
  const std::optional<SizeCurve>& curve() const { return curve_; }

 private:
  std::vector<uint32_t> sizes_;
  const uint32_t overhead_bytes_;
  SizeRound round_;
  bool asked_ = false;
  bool over_ = false;
  std::optional<SizeCurve> curve_;
};

}  // namespace sluice::rate
