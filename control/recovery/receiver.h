// The receiving end of a session, without its files and its wire: what is written, what is durable, what
// is missing, what must be asked for again, and when a file is complete.
//
// Pure. Told what happened, it says what to do (Actions); the caller owns flows, disks, journal and clock.
// Its memory of an object is a bit per extent, eight bytes per journal block of 64, and what is not durable
// yet.
//
// Group commit (docs/ARCHITECTURE.md, "Durability"): begin_sync takes what is written. After the sync,
// sync_succeeded gives the rows for the journal; once those are committed, journalled gives what may be
// reported. A sync that fails, or rows that are not committed, are told instead (sync_failed,
// not_journalled).
//
// Flows may end and others begin (start_attempt), also those of one leg while others go on (add_leg,
// drop_leg); what is written stays written. What always holds stands in receiver_invariants.cc. What a peer
// or a worker says is cut to what there is, or ignored or refused; nothing that they say ends the process.
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
#include "control/recovery/flow_ref.h"
#include "control/recovery/lane_command.h"
#include "control/recovery/need_planner.h"
#include "dataplane/base/number.h"
#include "dataplane/board/board.h"
#include "dataplane/sums/tree.h"

namespace sluice::recovery {

// To be sent again, on the flow whose worker has what else has come of these extents.
struct Need {
  ObjectId object;
  FlowRef flow;
  std::vector<Range> ranges;
};

enum class Judgement : uint8_t {
  kGood,
  kLater,      // it will be read again
  kForgotten,  // the bytes are not what the ledger says: they are missing again, and asked for
};

// Bytes that the ledger says are there, and that must be read before that counts.
struct Unread {
  ObjectId object;
  Range range;
};

class Receiver {
 public:
  // A file that is not larger and was never synced needs no sync of its own: it is synced before it is
  // renamed.
  static constexpr uint64_t kDirectCommitBytes = 4U << 20;

  static constexpr uint32_t kAdoptTag = UINT32_MAX;  // of the queries of an adoption

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
    std::vector<ObjectId> differ;    // they are complete, but not what the source sent: kIntegrity
    std::vector<ObjectId> finished;  // give these their names, then call set_done
  };

  // `lanes`: of the first leg.
  Receiver(const Indexed<ObjectId, Layout>& objects, uint32_t lanes, const Options& options);

  void add(const Layout& layout);  // one more, behind the others
  // From now on sums are joined of those of its extents, as workers and readers say them.
  void sum(ObjectId object, sums::Mask wanted);
  // They are whole if each extent that is written came with its sums.
  const sums::Tree& sums(ObjectId object) const { return objects_[object].sums; }
  // Rows of the journal, before the first attempt; finish_restore() after the last.
  Status restore(ObjectId object, const Block& block) { return objects_[object].ledger.restore(block); }
  // After its rows: these whole extents are zeros, where no row says otherwise.
  void restore_zeros(ObjectId object, const std::vector<Range>& ranges) {
    for (const Range& range : ranges) objects_[object].ledger.add_zeros(range);
  }
  void finish_restore();
  // The file was out of this process's hands: what the ledger says of it is unread until it was read again.
  // No file is finished before that (receiver_unread.cc).
  void distrust(ObjectId object);
  // The next piece to be read and judged; one at a time.
  std::optional<Unread> take_unread(ObjectId object);
  // `crc` of its bytes, or nothing when they could not be read; `sums` of them.
  Judgement judge_unread(std::optional<uint64_t> crc, const std::vector<sums::Summed>& sums = {});
  // Rows that changed and that no sync takes to the journal.
  std::vector<Block> take_changed(ObjectId object) { return objects_[object].ledger.take_changed(); }
  bool reading_unread() const { return reading_.has_value(); }
  // Of a file that has all its bytes, a worker still writes.
  bool awaits_writes() const;
  // The workers were not asked whether they write of it, as it is only being opened: they will be.
  void give_up_later(ObjectId object);
  // Nothing is written any more, until the next attempt.
  void flows_ended();
  uint64_t unread_bytes() const { return unread_bytes_; }  // that nobody has read yet
  // With new flows nothing is under way. They are those of one leg; others may join.
  void start_attempt(LegId leg, uint32_t lanes, uint64_t now_ns);
  // Flows of one more leg. Not while an adoption is under way.
  void add_leg(LegId leg, uint32_t lanes);
  // The flows of this leg have ended, and their workers write nothing any more.
  void drop_leg(LegId leg);
  // Flows that a former control began go on: asks their workers what they have written. Extents whose CRC
  // nobody knows are forgotten and asked for again.
  void adopt(LegId leg, uint32_t lanes, const std::vector<ObjectId>& open_objects, uint64_t now_ns);
  bool adopting() const { return adoption_.has_value(); }

  // From the board. Events that make no sense are ignored.
  void on_event(const board::Event& event);
  // From the source. False when there is no such range, flow or file.
  bool partition_sent(ObjectId object, FlowRef flow, Range range);
  bool file_digest(ObjectId object, const FileDigest& file);
  // Payload that flows have accepted since the last call.
  void arrived(uint64_t bytes, uint64_t now_ns);
  // Plans needs and syncs.
  void tick(uint64_t now_ns);
  Actions take_actions();

  // The number of extents taken; 0 when there is nothing to sync now.
  size_t begin_sync(ObjectId object);
  std::vector<Block> sync_succeeded(ObjectId object);
  // Of a sync, or of the last one, which a file is finished with. Nothing since the last good sync is
  // certain: it is missing again. False the second time: the disk is bad.
  bool sync_failed(ObjectId object);
  std::vector<Range> journalled(ObjectId object);
  // The journal could not be written: the attempt ends, and the batch counts as written only.
  void not_journalled(ObjectId object);
  // The file has its name, and its extents need no sync any more.
  void set_done(ObjectId object, uint64_t digest);
  // It is complete and gets no name: some of it will be forgotten.
  void finish_later(ObjectId object);
  void begin_anew(ObjectId object);  // its unfinished file is gone
  // These extents are worth nothing, whoever wrote them: workers take them again, and who sent them is asked
  // for them. With a block whose CRCs were folded all of it goes. False: a sync or a reading is under way
  // that concerns them.
  bool forget(ObjectId object, ExtentRun extents);
  uint64_t forgettings() const { return forgettings_; }  // so often something was forgotten
  // Of a file that was just made: these whole extents are zeros, for ever, and need not come.
  void put_zeros(ObjectId object, const std::vector<Range>& ranges);
  // Nothing of it will have a name: it counts as done, and workers hold no part of it any more. Not while a
  // sync, a reading or an adoption is under way that concerns it: may_fail().
  void failed(ObjectId object);
  bool may_fail(ObjectId object) const;

  size_t objects() const { return objects_.size(); }
  bool done(ObjectId object) const { return objects_[object].done; }
  // Actions::finished had it, and nothing of it was forgotten since.
  bool finishing(ObjectId object) const { return objects_[object].finishing; }
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

  // Before a file is cut to its size no worker may be writing of it any more: each is told to give it up, and
  // says whether it is.
  struct Fence {
    uint32_t tag = 0;  // of the round of questions; 0: nobody was asked
    uint32_t awaited = 0;
    bool writing = false;  // a worker is, in this round
    bool clear = false;
  };

  struct Object {
    Layout layout;
    ExtentMap written;
    ExtentLedger ledger;  // of what is durable
    NeedPlanner planner;
    Crcs unsynced;                // of what is written and in no sync yet
    uint64_t unsynced_bytes = 0;  // of the batch under way, too
    uint64_t unsynced_since_ns = 0;
    Crcs syncing;  // of the batch under way
    bool sync_under_way = false;
    bool failed_once = false;          // a sync did
    std::vector<BlockId> journalling;  // whose rows were given to the journal last
    uint64_t digest = 0;               // of what is written
    sums::Tree sums;                   // of nothing but what is written
    std::optional<uint64_t> source_digest;
    std::vector<Query> asked;          // in the round of questions under way, or the last one
    std::vector<Query> found_missing;  // in this round
    uint32_t query_tag = 0;            // of this round
    uint32_t unanswered = 0;
    ExtentMap unread;      // what the ledger knew when the file was distrusted
    ExtentId unread_from;  // those before this one were read
    Fence fence;
    bool finishing = false;  // it is being given its name
    bool failed = false;
    bool done = false;
  };

  // Going on with the flows of a former control takes two or three rounds. First a worker says what is
  // missing of each object. Then each flow answers an empty question: all events from before the first round
  // have come by then. If something had to be forgotten, each flow answers once more: by then it is
  // forgotten.
  struct Adoption {
    enum class Round : uint8_t { kMissing, kEvents, kForgotten };
    uint32_t awaited = 0;  // answers of this round
    Round round = Round::kMissing;
    struct Found {
      ExtentMap missing;  // as far as it was answered
      uint32_t runs = 0;  // in this answer
      uint64_t end = 0;   // of the last of them
    };
    std::unordered_map<ObjectId, Found> objects;
  };

  void check_invariants() const;  // where DCHECKs are on
  void check_object(const Object& object) const;
  void order(const LaneCommand& command);
  bool has(FlowRef flow) const;
  // Of this attempt, if there is none such.
  FlowRef or_first(FlowRef flow) const { return has(flow) || flows_.empty() ? flow : flows_.front(); }
  void order_give_up(ObjectId id, uint32_t tag);
  bool fenced(ObjectId id);
  void given_up(ObjectId id, const board::Event& event);
  void extent_written(ObjectId id, const board::Event& event);
  void query_answered(ObjectId id, const board::Event& event);
  // What an extent adds to the digest of its object.
  static uint64_t shifted(const Object& object, ExtentId extent, uint64_t crc);
  void forget_and_need(ObjectId id, std::vector<ExtentId> extents);
  std::optional<ExtentId> next_unread(const Object& object) const;
  void set_unread_from(Object& object, ExtentId from);
  void drop_unread(Object& object);
  Range forget_unread(ObjectId id, Range unread);  // all that is forgotten with it
  void plan_need(ObjectId id);
  void add_needs(ObjectId id, const std::vector<Query>& pieces);
  void plan_sync(ObjectId id);
  void finish_if_complete(ObjectId id);
  void query_unwritten(ObjectId id, uint64_t from);
  void adoption_answered(ObjectId id, const board::Event& event);
  void query_every_flow(ObjectId id);
  bool forget_unknown();
  void finish_adoption();

  Options options_;
  Indexed<ObjectId, Object> objects_;
  std::vector<ObjectId> unfinished_;  // all that are not done
  Actions actions_;
  std::vector<FlowRef> flows_;  // of this attempt
  uint64_t now_ns_ = 0;
  uint64_t planned_ns_ = 0;
  Arrivals arrivals_;
  uint64_t pace_since_ns_ = 0;
  uint64_t pace_bytes_ = 0;
  uint32_t fences_ = 0;
  bool flows_ended_ = false;
  uint64_t bytes_written_ = 0;
  uint64_t unsynced_bytes_ = 0;  // of batches under way, too
  uint64_t unread_bytes_ = 0;
  uint64_t forgettings_ = 0;
  struct Reading {
    ObjectId object;
    ExtentLedger::Piece piece;
  };
  std::optional<Reading> reading_;
  size_t done_ = 0;
  std::optional<Adoption> adoption_;
};

}  // namespace sluice::recovery
