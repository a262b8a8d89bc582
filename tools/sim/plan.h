// Everything that a seed decides before its run begins: sizes, knobs, faults and when they strike.
//
// Pure. Swarm testing: each seed has a random subset of the fault kinds, some of them extreme.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "control/catalog/catalog.h"
#include "control/rate/mode.h"
#include "dataplane/base/options/options.h"
#include "dataplane/core/wire.h"
#include "tools/sim/courses.h"
#include "tools/wire/settings.h"

namespace sluice::sim {

inline constexpr uint64_t kSourceVersion = 2;  // of a source file that did not change

// What an operator does, to whatever the control of that node has under way.
enum class Act : uint8_t { kPause, kContinue, kCancel, kStop };
struct Action {
  uint64_t time_ns = 0;
  uint32_t node = 0;
  Act act{};
};

enum class CrashKind : uint8_t { kDataplane, kControl, kMachine };
const char* crash_name(CrashKind kind);

struct Crash {
  uint64_t time_ns = 0;  // since the start
  uint32_t node = 0;
  CrashKind kind = CrashKind::kDataplane;
  uint64_t down_ns = 0;
};

// Deliberate defects of what performs a transfer's effects, to prove that the checks find them.
enum class Break : uint8_t {
  kNone,
  kReportBeforeCommit,  // durable is reported before the journal has it
  kCallBeforeCommit,    // the peer hears of a session before the journal knows of it
  kMoveBeforeCommit,    // data moves before the journal knows what was agreed upon
  kNoCrcCheck,          // damaged chunks are taken as good
  kNoForget,            // after a failed sync nothing is asked for again
  kCommitBeforeSync,    // rows are journalled before the data is synced
  kNoDirectorySync,     // the final name is reported before its directory is synced
  kDoubleRate,          // lanes are given twice the rate
  kMute,                // lanes are given none
  kNoReread,            // a restarted source does not read again what it knows no CRC of
  kRenameBeforeSync,    // a file gets its name before what it was cut to is synced
  kNoRenewal,           // a control stream that was lost while data moved is not opened again
  kTrustJournal,        // what the journal says of unfinished files is not read after an interruption
  kLostPause,           // a pause is acknowledged, and the journal never hears of it
  kNoInquiry,           // whoever was called never asks whether the session is still known
  kLostGrowth,          // files are offered that the source's journal never heard of
  kNoLease,             // a destination does not look at leases
  kReplayedGrant,       // a destination forgets which sessions were begun by a grant
  kStolenGrant,         // a destination does not ask who shows a grant
  kEndlessGrant,        // a destination looks at no time of a grant
};
Break break_named(const std::string& name, bool* known);
std::vector<std::string> break_names();

// The control of the initiator stands still for a while once its transfer has come so far.
enum class FreezeAt : uint8_t { kLastBytes, kFarewell, kEnd };
struct Freeze {
  uint64_t ns = 0;  // 0: never
  FreezeAt at{};
};

// What befalls one file. kTaken: somebody else's stands under its name at the destination.
enum class FileTrouble : uint8_t { kChanges, kUnreadable, kTaken, kUnwritable };
const char* trouble_name(FileTrouble trouble);
struct Trouble {
  uint64_t time_ns = 0;
  uint32_t object = 0;
  FileTrouble trouble{};
  int error = 0;  // of each read or write from then on
};

// The workers of one leg close its flows.
struct LegDeath {
  uint64_t time_ns = 0;
  uint32_t node = 0;
  uint32_t leg = 0;
};

struct DiskPlan {
  uint64_t latency_ns = 50'000;
  uint64_t jitter_ns = 0;         // uniform, on top
  uint64_t slow_per_million = 0;  // operations that take slow_ns
  uint64_t slow_ns = 0;
  uint64_t sync_ns = 1'000'000;
  uint64_t sync_jitter_ns = 0;
  uint64_t sync_error_per_million = 0;
  uint32_t sync_errors_max = 0;
  uint64_t error_per_million = 0;  // EIO of a read or write
  uint32_t errors_max = 0;
  bool full = false;  // one write ends with ENOSPC
  uint32_t sector_bytes = 512;
  uint64_t commit_ns = 500'000;  // of the journal
};

struct Plan {
  uint64_t seed = 0;
  Break broken = Break::kNone;
  Course course = Course::kTwoNodes;
  uint32_t sources = 1;  // nodes that have the files; one more is the destination
  SourcesPlan several;
  RivalsPlan rivals;
  GrantPlan grant;

  std::vector<uint64_t> sizes;  // of the files
  uint32_t extent_bytes = 65536;
  uint32_t chunk_bytes = 8192;
  uint64_t partition_bytes = 65536;
  uint32_t lanes = 1;  // of a leg
  uint32_t legs = 1;   // of the transfer, between the two nodes
  std::array<uint32_t, 2> workers{1, 1};
  uint32_t tx_extents = 8;  // per worker
  uint32_t rx_extents = 8;
  uint32_t credit = 4;  // per lane
  wire::CrcKind crc = wire::CrcKind::kCrc64Ecma;
  std::array<wire::Protection, 2> protection{};  // the least that each node wants
  uint32_t key_epoch_bits = 12;
  bool holes = false;    // in files at the source
  bool growing = false;  // the list of files is read while data moves
  bool foreseen =
      false;  // a source's files are looked at before it calls, so that the call may bring its offer
  uint64_t list_ns = 0;  // a part of it takes at most so long
  bool packs = false;    // some files are packs: in memory at the destination, until they get their names
  bool udp_checksum = false;
  bool direct = true;
  uint64_t rate_bps = 1'000'000'000;
  uint32_t queue_datagrams = 0;  // that a port says it takes; 0: it does not say
  rate::Mode rate_mode = rate::Mode::kFixed;
  uint32_t expected_loss_ppm = 0;
  options::Fec fec = options::Fec::kOff;
  options::Compress compress = options::Compress::kOff;
  bool compressible = false;  // much of what files hold gets shorter
  uint32_t status_interval_ns = 1'000'000;
  uint64_t sync_lag_bytes = 1 << 20;
  uint64_t sync_lag_ns = 100'000'000;
  uint64_t crc_lag_ns = 100'000'000;  // how often the source journals its CRCs
  uint64_t tick_ns = 1'000'000;       // of a control
  uint32_t initiator = kSource;
  uint32_t open_objects_max = 256;
  uint32_t open_ahead = 16;
  uint64_t stall_timeout_ns = 5'000'000'000;
  uint64_t resume_timeout_ns = 60'000'000'000;
  uint64_t keep_ns = 1'000'000'000'000;

  // By the node that sends; a destination sends to all sources alike.
  std::array<emulator::Settings, kNodesMax> path;
  std::array<uint64_t, 2> lost_frames{};  // bit n: the n-th UDP frame of that node is lost
  // The path from the source carries IP datagrams of so many bytes, from a moment on; 0: of any size. What is
  // longer is lost, and nobody says so.
  uint32_t carries_bytes = 0;
  uint64_t narrow_ns = 0;
  bool stays_narrow = false;             // also when all else is healed
  bool nat = false;                      // before the initiator, which only calls
  std::vector<uint64_t> nat_forgets_ns;  // when it forgets its ports
  uint64_t blackhole_per_second = 0;
  uint64_t blackhole_ns = 0;
  bool stranger_alone = false;      // no other fault, and no attempt may end for it
  uint64_t forged_per_million = 0;  // datagrams that a stranger's follows, false in one field
  bool caller_copies = false;       // as a port whose frames are written where the peer reads them
  uint32_t device_burst = 0;        // frames that the device takes at once; 0: all
  uint64_t device_hold_ns = 0;      // it reads a frame's bytes so much later
  uint32_t device_keeps = 0;        // so many frames that left are given back only when others leave
  uint32_t device_ring = 1024;      // received frames that wait for a worker
  uint64_t stream_latency_ns = 1'000'000;
  std::array<uint64_t, kNodesMax>
      stream_far_ns{};  // so much longer is the way to this node; also for statuses
  uint64_t stream_jitter_ns = 0;
  std::vector<uint64_t> cuts;      // of the control connection
  uint64_t cut_notice_ns = 0;      // until an end knows of it
  uint64_t stall_per_million = 0;  // of a worker's loops and a control's ticks
  uint64_t stall_ns = 0;
  std::array<DiskPlan, kNodesMax> disk;
  std::vector<Crash> crashes;
  std::vector<Action> actions;
  std::vector<LegDeath> leg_deaths;
  uint64_t journal_lost_ns = 0;       // 0: never. The initiator's control dies then, and its journal with it
  bool called_loses_journal = false;  // then it is the other node's, whose files stay under their names
  uint64_t removed_ns =
      0;  // 0: never. Somebody removes the destination's unfinished files, and their directory
  Freeze freeze;
  uint64_t full_per_million = 0;             // wishes for a place of a node that have to wait
  uint64_t full_ns = 0;                      // at most so long
  uint64_t crash_at_points_per_million = 0;  // between the steps of a commit
  uint64_t source_changes_ns = 0;            // 0: never
  uint64_t snapshot_ns = 0;                  // of the destination's volume, to which it goes back; 0: never
  std::vector<Trouble> troubles;
  bool damage = false;   // in the destination's unfinished files, while its machine is down
  bool misread = false;  // one repeated read at the source gives wrong bytes

  uint64_t safety_ns = 500'000'000;  // faults end then
  uint64_t healed_ns_max = 120'000'000'000;

  uint32_t nodes() const { return sources + 1; }
  // Each other node is a source, and kDestination has a number among them.
  uint32_t legs_of(uint32_t node) const {
    return course == Course::kSources && node == kDestination ? sources : legs;
  }
  uint64_t bytes() const { return std::accumulate(sizes.begin(), sizes.end(), uint64_t{0}); }
  // Where nobody looks at the CRC, there is to be one.
  wire::Protection protection_of(uint32_t node) const {
    return broken == Break::kNoCrcCheck ? wire::Protection::kCrc : protection[side_of(node)];
  }
  wire::Protection agreed_protection() const { return std::max(protection_of(0), protection_of(1)); }
  std::string text() const;  // every knob, a line each
};

Plan make_plan(uint64_t seed);
// The same, but of this course, whatever the seed says.
Plan make_plan(uint64_t seed, Course course);
// More than two nodes, and what befalls them.
void choose_course(Plan* plan, Course course);
std::string course_text(const Plan& plan);
// So many legs, and what befalls them.
void choose_legs(Plan* plan, uint32_t legs);
// Gives it a code, paths that lose, and a loss that is declared, whatever its seed says.
void have_coded(Plan* plan);
// What of it concerns protection; of sizes that are chosen already.
void choose_protection(Plan* plan);
// Which single files fail.
void choose_failures(Plan* plan);
// Which files and journals somebody removes.
void choose_removals(Plan* plan);
std::string troubles_text(const Plan& plan);
// Which files are packs, and whether they are found while data moves.
void choose_packs(Plan* plan);
catalog::FileKind kind_of(const Plan& plan, uint32_t object);

}  // namespace sluice::sim
