// The receiving end of a session, without its files and its wire: what is written, what is durable, what
// is missing, what must be asked for again, and when a file is complete.
//
// Pure: told what happened, it says what to do (Actions); the caller owns flows, disks, journal and clock.
// Its memory of an object is a bit per extent, eight bytes per journal block of 64, and what is not durable
// yet. Group commit (shared/design/architecture.md, "Durability"): begin_sync takes what is written; after
// the sync, `sync_succeeded` gives the journal's rows; once those are committed, `journalled` gives what may
// be reported. Attempts: flows may end and others begin (start_attempt); what is written stays written.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "control/recovery/extent_ledger.h"
#include "control/recovery/extent_map.h"
#include "control/recovery/lane_command.h"
#include "control/recovery/need_planner.h"
#include "dataplane/base/number.h"
#include "dataplane/board/board.h"

namespace sluice::recovery {

// To be sent again, on this lane: its worker holds what else has come of these extents.
struct Need {
  ObjectId object;
  LaneId lane;
  std::vector<Range> ranges;
};

class Receiver {
 public:
  // A smaller file that was never synced needs no sync of its own: the commit's makes it durable.
  static constexpr uint64_t kDirectCommitBytes = 4U << 20;

  static constexpr uint32_t kAdoptTag = UINT32_MAX;
  static constexpr uint32_t kAnswerRuns = 512;  // a worker's answer to kQueryMissing has at most so many

  // A file, as the source knows it.
  struct FileDigest {
    uint64_t size_bytes = 0;
    uint64_t digest = 0;
  };
  struct Options {
    uint64_t sync_lag_bytes = 0;
    uint64_t sync_lag_ns = 0;
  };
  struct Actions {
    std::vector<LaneCommand> commands;
    std::vector<Need> needs;         // to the source
    std::vector<ObjectId> syncs;     // begin_sync these
    std::vector<ObjectId> differ;    // complete, but not what the source sent: kIntegrity
    std::vector<ObjectId> finished;  // complete and checked: give it its name, then set_done
  };

  Receiver(const Indexed<ObjectId, Layout>& objects, uint32_t lanes, const Options& options);

  // Rows of the journal, before the first attempt.
  Status restore(ObjectId object, const Block& block) { return objects_[object].ledger.restore(block); }
  void finish_restore();
  // New flows: nothing is under way.
  void start_attempt(uint32_t lanes, uint64_t now_ns);
  // Flows that another control began are continued: asks their workers what they have written. Extents
  // whose CRC nobody knows are forgotten and asked for again.
  void adopt(uint32_t lanes, const std::vector<ObjectId>& open_objects, uint64_t now_ns);
  bool adopting() const { return adoption_.has_value(); }

  // From the board; events that make no sense are ignored.
  void on_event(const board::Event& event);
  // From the source. False: there is no such range, lane or file.
  bool partition_sent(ObjectId object, LaneId lane, Range range);
  bool file_digest(ObjectId object, const FileDigest& file);
  // Plans needs and syncs.
  void tick(uint64_t now_ns);
  Actions take_actions();

  // Number of extents taken; 0: there is nothing to sync.
  size_t begin_sync(ObjectId object);
  std::vector<Block> sync_succeeded(ObjectId object);
  std::vector<Range> journalled(ObjectId object);
  // Nothing since the last good sync is certain: it is missing again. False the second time: the disk is bad.
  bool sync_failed(ObjectId object);
  // The file has its name (at once, after a restart). Its extents need no sync any more.
  void set_done(ObjectId object, uint64_t digest);
  // The journal could not be written: the attempt ends, and the batch counts as written only.
  void not_journalled(ObjectId object);
  void begin_anew(ObjectId object);  // its file is gone

  size_t objects() const { return objects_.size(); }
  bool done(ObjectId object) const { return objects_[object].done; }
  bool all_done() const { return done_ == objects_.size(); }
  const ExtentMap& written(ObjectId object) const { return objects_[object].written; }
  const ExtentLedger& ledger(ObjectId object) const { return objects_[object].ledger; }
  uint64_t digest(ObjectId object) const { return objects_[object].digest; }
  std::optional<uint64_t> source_digest(ObjectId object) const { return objects_[object].source_digest; }
  uint64_t bytes_written() const { return bytes_written_; }
  uint64_t unsynced_bytes() const { return unsynced_bytes_; }
  // What the source need not send: everything written.
  std::vector<Range> held(ObjectId object) const;

 private:
  using Crcs = std::unordered_map<ExtentId, uint64_t>;

  struct Object {
    Layout layout;
    ExtentMap written;
    ExtentLedger ledger;  // durable
    NeedPlanner planner;
    Crcs unsynced;
    uint64_t unsynced_bytes = 0;
    uint64_t unsynced_since_ns = 0;
    Crcs syncing;
    bool sync_under_way = false;
    bool failed_once = false;
    std::vector<BlockId> journalling;  // blocks given to the journal for `syncing`
    uint64_t digest = 0;               // of what is written
    std::optional<uint64_t> source_digest;
    std::vector<Query> asked;          // unanswered, or answered in this round
    std::vector<Query> found_missing;  // of this round
    uint32_t query_tag = 0;
    uint32_t unanswered = 0;
    bool finishing = false;
    bool done = false;
  };

  // Continuing the flows of another control, in rounds: each object's missing ranges, by any of its workers;
  // an answer from every lane, behind which all events of the first round have come; and, when something
  // had to be forgotten, another, behind which that is done.
  struct Adoption {
    enum class Round : uint8_t { kMissing, kEvents, kForgotten };
    uint32_t awaited = 0;  // answers
    Round round = Round::kMissing;
    struct Found {
      ExtentMap missing;
      uint32_t runs = 0;  // of this answer
      uint64_t end = 0;
    };
    std::unordered_map<ObjectId, Found> objects;
  };

  void check_invariants() const;  // where DCHECKs are on
  void check_object(const Object& object) const;
  void command(const LaneCommand& command);
  void extent_written(ObjectId id, const board::Event& event);
  void query_answered(ObjectId id, const board::Event& event);
  // What an extent adds to the digest of its object.
  static uint64_t shifted(const Object& object, ExtentId extent, uint64_t crc);
  void forget_and_need(ObjectId id, std::vector<ExtentId> extents);
  void plan_need(ObjectId id);
  void add_needs(ObjectId id, const std::vector<Query>& pieces);
  void plan_sync(ObjectId id);
  void finish_if_complete(ObjectId id);
  void query_unwritten(ObjectId id, uint64_t from);
  void adoption_answered(ObjectId id, const board::Event& event);
  void query_every_lane(ObjectId id);
  bool forget_unknown();
  void finish_adoption();

  Options options_;
  Indexed<ObjectId, Object> objects_;
  std::vector<ObjectId> unfinished_;
  Actions actions_;
  uint32_t lanes_;  // of this attempt
  uint64_t now_ns_ = 0;
  uint64_t planned_ns_ = 0;
  uint64_t bytes_written_ = 0;
  uint64_t unsynced_bytes_ = 0;  // batches under way included
  size_t done_ = 0;
  std::optional<Adoption> adoption_;
};

}  // namespace sluice::recovery
