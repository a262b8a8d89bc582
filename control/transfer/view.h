// A transfer as an operator sees it.
//
// Plain data; control/api turns it into messages of its own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "control/board/figures.h"
#include "control/words/records.h"

namespace sluice::transfer {

enum class ViewState : uint8_t {
  kQueued,  // for its turn, or for something else of this node that others have
  kConnecting,
  kNegotiating,
  kTransferring,
  kFinishing,
  kWaiting,  // goes on by itself; `waiting_for` says for what
  kPaused,   // until an operator continues it; `error` says why, if no operator paused it
  kSucceeded,
  kFailed,
  kCancelled,
};

struct FileView {
  uint32_t object = 0;
  std::string source;
  std::string destination;
  uint64_t size_bytes = 0;
  uint64_t bytes_done = 0;
  bool done = false;
  std::string digest_source;  // hex, empty until known
  std::string digest_destination;
  uint32_t names = 1;  // more in a pack
  bool packed = false;
  digests::Values digests = {};  // that archives ask for, of a file by itself; empty until known
};

enum class DeadlineState : uint8_t {
  kMeasuring,  // not judged yet
  kAdmitted,
  kDoubtful,  // judged that it cannot be kept, and not ended because of that
  kLate,      // it is over, and the session goes on
  kKept,
  kMissed,  // the session ended late, or badly
};

struct DeadlineView {
  int64_t deadline_unix_ns = 0;
  DeadlineState state = DeadlineState::kMeasuring;
  std::optional<double> chance;  // 0 to 1; nothing: nobody can say
  std::optional<int64_t> expected_end_unix_ns;
  uint64_t late_ns = 0;
};

inline constexpr size_t kFailuresShown = 1000;

// Files, and what is in packs.
struct NamesView {
  uint64_t total = 0;
  uint64_t done = 0;
  uint64_t failed = 0;
  uint64_t left_out = 0;                      // devices, pipes, sockets
  std::vector<catalog::FailedName> failures;  // some of both, at most kFailuresShown
  bool listing = false;  // the list is not complete: all totals are of what was found so far
};

// In the queue of this node.
struct QueueView {
  uint32_t place = 0;   // 1 is the next; 0: it does not wait there
  uint32_t length = 0;  // how many wait there
  int32_t priority = 0;
};

struct BottleneckView {
  verdict::Verdict now;                  // of late while data moves, else of all the time in which it did
  std::vector<verdict::Verdict> causes;  // parts of that time, the largest first
};

struct AskerView {
  bool of_this_node = false;
  std::optional<User> user;      // who asked for it as themselves; nothing: an operator
  std::optional<Mapped> mapped;  // of a peer: whose files these are here
  std::optional<LocalFiles> local_files;
  std::string lease;        // as it is shown to people; empty: it has none
  std::string ordered_by;   // the node that has ordered it of this one, or of its peer; empty: none
  std::string source_node;  // of one that this node has ordered: where it comes from, `peer` is where it goes
};

// Of a probe.
struct EchoView {
  uint32_t asked = 0;
  uint32_t bytes = 0;  // of each
  bool udp_checksum = false;
  std::vector<board::Event> faults;  // once it is over (board::EventKind::kEchoFault)
};

struct LegView {
  std::string peer;
  std::string state;        // "away", "waiting", "beginning", "moving", "ending"
  std::string waiting_for;  // of this leg, or empty
  uint32_t lanes = 0;
  std::optional<double> rate_bps;   // payload over the last second, by this leg; nothing: there is no figure
  board::FlowFigures figures = {};  // of all its attempts
  std::string error = {};           // why it ended while others went on, and has not come back; or empty
  std::optional<EchoView> echoes = {};
};

struct RateView {
  uint64_t limit_bps = 0;                    // 0: none
  std::string mode;                          // rate::Mode, once it is agreed upon
  std::optional<rate::Condition> condition;  // at the source, while data moves: what holds it there
};

// Once they are agreed upon.
struct ExtrasView {
  std::string fec;       // "off", "auto", "rs", "raptorq"
  std::string compress;  // "off", "auto", "zstd"
};

struct View {
  std::string id;
  ViewState state = ViewState::kNegotiating;
  AskerView asker;
  Role role = Role::kUnknown;
  std::string peer;
  std::vector<FileView> files;
  std::vector<LegView> legs;
  NamesView names;
  uint64_t bytes_total = 0;
  Summary summary;
  std::optional<double> rate_bps;  // payload over the last second; nothing: there is no figure yet
  uint32_t lanes = 0;
  uint32_t chunk_bytes = 0;
  std::string chunk_reason;  // rate::SizeReason, once it is agreed upon
  rate::SizeCurve sizes;     // at a source that measures which brings most
  std::string crc;
  std::string protection;  // of data
  ExtrasView extras;
  RateView rate;
  BottleneckView bottleneck;
  int64_t started_unix_ns = 0;
  std::string waiting_for;
  QueueView queue;
  std::optional<Error> error;
  std::optional<DeadlineView> deadline;
};

// Of a transfer that has ended, from what the journal has of it.
View view_of(const Saved& saved);

}  // namespace sluice::transfer
