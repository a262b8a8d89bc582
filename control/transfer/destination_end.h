// The receiving end of a transfer: what arrived, what is durable, which file has its name, and what the
// source is told of it. What is missing, due or complete is decided by recovery::Receiver, the order of
// durability by Commit, the files by DestinationFiles.
//
// Pure. An error that a function returns ends the attempt; it is the only way in which one is told.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "control/board/figures.h"
#include "control/recovery/loss_detector.h"
#include "control/recovery/receiver.h"
#include "control/transfer/commit.h"
#include "control/transfer/control_stream.h"
#include "control/transfer/destination_files.h"
#include "control/transfer/pending.h"

namespace sluice::transfer {

class DestinationEnd {
 public:
  // Extent size, CRC kind and whether bytes are only counted are those of the first agreement, for ever.
  DestinationEnd(const Settings& settings, const Agreement& agreement,
                 const std::vector<catalog::File>& files = {});
  // From the journal: kStorage when its rows make no sense. recover() comes next.
  static Result<DestinationEnd> restore(const Settings& settings, const Agreement& agreement,
                                        const Saved& saved);

  DestinationFiles& files() { return files_; }
  const DestinationFiles& files() const { return files_; }

  // ---- an attempt ----
  void prepare(Effects& out);  // the offer is agreed upon: files, then objects
  TransferReady ready(std::vector<uint64_t> flow_ids, std::vector<uint32_t> credit_extents) const;
  void start_attempt(ControlStream& stream, size_t lanes, uint64_t now_ns);
  // ---- a list that is growing (destination_list.cc) ----
  Status hear_offer(const TransferOffer& part);  // while data moves: it waits for its turn
  bool offers_wait() const {
    return !offers_.empty() && files_.growth() == GrowthPhase::kNone && !files_.halted();
  }
  Status take_offers(const DestinationFiles::Wish* wish, Effects& out);
  void answer_offer(Effects& out);  // once its files are there
  void on_new_stream() {            // what has not been answered is offered again
    offers_.clear();
    files_.drop_parts();
  }
  bool waits_for_list() const {
    const bool grows = catalog().growing() || files_.growth() != GrowthPhase::kNone;
    return receiver_ && grows && receiver_->all_done();
  }
  // Flows of an earlier life of this control: their workers are asked what they have.
  void adopt_work(ControlStream& stream, std::span<const board::FlowSlot* const> lanes, uint64_t now_ns,
                  Effects& out);
  bool adopting() const { return receiver_ && receiver_->adopting(); }
  // Of the source, which is told so; 0: as agreed upon.
  void limit_rate(uint64_t limit_bps, Effects& out);
  void send_states(Effects& out) const;  // what the source need not send
  void halt() { files_.halt(); }
  // What is known of it before anything has come.
  std::vector<recovery::Block> take_rows(ObjectId object) { return receiver_->take_changed(object); }
  void settle(Effects& out);  // flows have ended: what they have brought becomes durable
  void attempt_over();

  // ---- what is told ----
  Status on_message(const Message& message, uint64_t now_ns, Effects& out);
  Status on(const FlowEvent& event, Effects& out);
  Status on(const Tick& event, uint64_t now_ns, Effects& out);
  Status on(const FilesRecovered& event, Effects& out);
  Status on(const FilesCreated& event, Effects& out);
  Status on(const FileReopened& event, Effects& out);
  Status on(const FileRecreated& event, Effects& out);
  Status on(const ObjectSynced& event, Effects& out);
  Status on(const ObjectFinished& event, Effects& out);
  Status on(const ObjectReadBack& event, Effects& out);
  Status on(const ObjectNamed& event, Effects& out);
  Status on(const FileDropped& event, Effects& out);
  Status on(const JournalWritten& event, Effects& out);

  // ---- what it knows ----
  bool complete() const {
    const bool whole = !catalog().growing() && files_.growth() == GrowthPhase::kNone;
    return receiver_ && whole && receiver_->all_done() && failed_unsaid_ == 0;
  }
  // A file that had its name before a restart, and is not found there any more.
  const std::optional<Error>& lost() const { return lost_; }
  bool peer_ended() const { return peer_ended_; }
  uint32_t pending() const { return files_.pending() + pending_.count(); }
  const catalog::Catalog& catalog() const { return files_.catalog(); }
  const Agreement& agreement() const { return agreement_; }
  uint64_t bytes_done() const { return receiver_ ? receiver_->bytes_written() : 0; }
  uint64_t bytes_done(ObjectId object) const;
  std::vector<recovery::Range> held(ObjectId object) const { return receiver_->held(object); }
  bool done(ObjectId object) const { return receiver_->done(object); }
  std::optional<uint64_t> source_digest(ObjectId object) const { return receiver_->source_digest(object); }
  std::optional<uint64_t> digest(ObjectId object) const;    // once all is there
  uint64_t steps() const { return steps_ + bytes_done(); }  // changes with every step forward
  std::string waiting_for(const control::FlowFigures& before, const control::FlowFigures& now,
                          uint64_t now_ns) const;

 private:
  void make_receiver();
  void put_holes(ObjectId object);
  ObjectId receive_new();  // from this one on
  void note_growth(ObjectId first, Effects& out);
  Status growth_noted(const Status& written, Effects& out);
  void say_ready(Effects& out) const;
  Status follow_receiver(Effects& out);
  void begin_sync(ObjectId object, Effects& out);
  Status commit(ObjectId object, CommitEvent event, const Status& status, Effects& out);
  void journal_extents(ObjectId object, Effects& out);
  void journal_state(ObjectId object, Entry entry, catalog::FileState state, Durability durability,
                     Effects& out);
  void journal_suspect(ObjectId object, Entry entry, Effects& out);
  void report_durable(ObjectId object, Effects& out);
  void say_durable(ObjectId object, const std::vector<recovery::Range>& durable, Effects& out);
  void say_missing(ObjectId object, Effects& out) const;
  Status named(ObjectId object, Effects& out);
  Status last_pack_due(Effects& out);
  // destination_failures.cc
  Status fail(ObjectId object, const Error& error, Effects& out,
              catalog::Failure failure = catalog::Failure::kNone);
  Status found_damaged(ObjectId object, Effects& out);
  void begin_failing(ObjectId object, const Error& error, Effects& out,
                     catalog::Failure failure = catalog::Failure::kNone);
  Status on(const ObjectFailed& failed);
  Status give_up_failing(Effects& out);
  void give_up(ObjectId object, const std::vector<catalog::FailedName>& names, Effects& out);
  void say_failed(ObjectId object, Effects& out) const;
  bool waits_for_others(ObjectId object) const;
  Error differs(ObjectId object) const;
  Status extent_failed(const board::Event& event, Effects& out);
  void distrust(ObjectId object);
  void note_lost(ObjectId object, Effects& out);
  void read_claims(Effects& out);
  Status claim_read(const ObjectReadBack& event, Effects& out);
  void read_back(ObjectId object, uint64_t from, Effects& out);
  Status read_back_for_name(const ObjectReadBack& event, Effects& out);
  void say(Message message, Effects& out) const {
    if (stream_ != nullptr) stream_->say(std::move(message), out);
  }

  const Settings& settings_;
  Agreement agreement_;
  DestinationFiles files_;
  ControlStream* stream_ = nullptr;  // of the attempt
  std::optional<recovery::Receiver> receiver_;
  Indexed<ObjectId, Commit> commits_;
  Indexed<LaneId, recovery::LossDetector> detectors_;
  std::map<ObjectId, Error> sync_errors_;   // of failed syncs, while the journal is told
  std::map<ObjectId, uint64_t> read_crcs_;  // of files that are read back before they get their names
  std::optional<ObjectId> last_due_;        // the last pack, complete before the others were done
  std::set<ObjectId> lost_objects_;
  std::deque<TransferOffer> offers_;  // parts of those that were made while another was taken
  struct Failing {
    std::vector<catalog::FailedName> names;
    bool dropping = false;  // its unfinished file is being removed
  };
  // They are given up once nothing of them is under way, in this attempt or, found out again, in the next.
  std::map<ObjectId, Failing> failing_;
  std::set<ObjectId> given_;    // they have their names, of a pack some, which is not certain yet
  uint32_t failed_unsaid_ = 0;  // the journal is told first
  std::optional<Error> lost_;
  uint64_t steps_ = 0;
  Pending pending_;
  uint64_t limit_bps_ = 0;  // of the source, by an operator of this node
  bool limit_was_set_ = false;
  bool peer_ended_ = false;
  bool interrupted_ = false;  // once, by a restart or a pause
};

}  // namespace sluice::transfer
