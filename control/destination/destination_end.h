// The receiving end of a transfer: what arrived, what is durable, which file has its name, and what the
// source hears of it. recovery::Receiver decides what is missing, due or complete, Commit the order of
// durability. DestinationFiles makes the files and has them open in time; DestinationLeg tells workers what
// was lost.
//
// Pure. An error that a function returns ends the attempt; lost() is the error with which the transfer ends.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control/board/figures.h"
#include "control/destination/commit.h"
#include "control/destination/destination_files.h"
#include "control/destination/destination_leg.h"
#include "control/destination/several_sources.h"
#include "control/recovery/receiver.h"
#include "control/words/data_end.h"
#include "control/words/end_legs.h"
#include "control/words/pending.h"

namespace sluice::transfer {

class DestinationEnd final : public DataEnd {
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

  // ---- as DataEnd says ----
  void start_attempt(const Way& way, uint64_t now_ns, Effects& out) override;
  bool running() const override { return running_; }
  bool may_join() const override {
    return !catalog().growing() && files_.growth() == GrowthPhase::kNone && offers_.empty();
  }
  void leave(LegId leg, Effects& out) override;
  void left(LegId leg, Effects& out) override;
  // Nobody remembers over a restart what each of several sources was asked for.
  bool may_adopt() const override { return !agreement_.abilities.has(Ability::kParts); }
  void adopt_files(Effects& out) override { files_.adopt(out); }
  bool prepared() const override { return files_.prepared(); }
  void adopt_work(const Way& way, std::span<const board::FlowSlot* const> lanes, uint32_t tag,
                  uint64_t now_ns, Effects& out) override;
  bool adopting() const override { return receiver_ && receiver_->adopting(); }
  void on_new_stream(LegId leg) override {  // what has not been answered is offered, and asked for, again
    if (leg == offers_on_) drop_offers();
    if (several_) several_->on_new_stream(leg);
  }
  // The states must name each extent that the source's worker saw completed: its event comes before.
  bool has_states() const override { return true; }
  void send_states(LegId leg, Effects& out) const override;
  // An offer that came while data moves is taken in its turn, and answered once its files are there
  // (destination_list.cc).
  Status keep_list(const Request* request, Effects& out) override;
  bool wants_list() const override { return false; }  // the source reads it
  bool waits_for_list() const override {
    const bool grows = catalog().growing() || files_.growth() != GrowthPhase::kNone;
    return receiver_ && grows && receiver_->all_done();
  }
  void limit_rate(uint64_t limit_bps, Effects& out) override;
  void halt() override { files_.halt(); }
  void settle(Effects& out) override;
  void attempt_over() override;
  void released() override { files_.released(); }
  // What is known of it before anything has come.
  std::vector<recovery::Block> take_rows(ObjectId object) override { return receiver_->take_changed(object); }
  void check_invariants() const override;

  // ---- what is told ----
  Status on_message(LegId leg, const Message& message, Effects& out) override;
  Status on(const FlowEvent& event, Effects& out) override;
  Status on(const Tick& event, uint64_t now_ns, Effects& out) override;
  Status on(const ObjectOpened& event, Effects& out) override;
  Status on(const ObjectClosed& event, Effects& out) override;
  Status on(const ObjectFetched& event, Effects& out) override { return files_.on(event, out); }
  Status on(const JournalWritten& event, Effects& out) override;
  Status on(const FilesRecovered& event, Effects& out);
  Status on(const FilesCreated& event, Effects& out);
  Status on(const FileReopened& event, Effects& out);
  Status on(const FileRecreated& event, Effects& out);
  Status on(const ObjectSynced& event, Effects& out);
  Status on(const ObjectFinished& event, Effects& out);
  Status on(const ObjectReadBack& event, Effects& out);
  Status on(const ObjectNamed& event, Effects& out);
  Status on(const FileDropped& event, Effects& out);

  // ---- what it knows ----
  const catalog::Catalog& catalog() const override { return files_.catalog(); }
  bool complete() const override {
    const bool whole = !catalog().growing() && files_.growth() == GrowthPhase::kNone;
    return receiver_ && whole && receiver_->all_done() && failed_unsaid_ == 0;
  }
  // A file that had its name before a restart, and is not found there any more.
  std::optional<Error> lost() const override { return lost_; }
  bool peer_ended(LegId leg) const override { return legs_.peer_ended(leg); }
  bool peer_ended() const override { return legs_.peer_ended(); }
  uint32_t pending() const override { return files_.pending() + pending_.count(); }
  uint64_t steps() const override { return steps_ + bytes_done() + (several_ ? several_->answers() : 0); }
  uint64_t bytes_done() const { return receiver_ ? receiver_->bytes_written() : 0; }
  uint64_t bytes_done(const board::FlowFigures& /*figures*/) const override { return bytes_done(); }
  uint64_t bytes_done(ObjectId object) const override;
  bool bytes_are_certain() const override { return true; }
  bool done(ObjectId object) const override { return receiver_->done(object); }
  Digests digests(ObjectId object) const override;  // its own once all is there
  bool leaves_files() const override { return !files_.discards(); }
  std::string waiting_for(const board::FlowFigures& before, const board::FlowFigures& now,
                          uint64_t interval_ns, uint64_t now_ns) const override;
  void others_join(SeveralSources::Others others) {
    if (several_) several_->others_join(others);
  }
  std::vector<LeftOut> take_left_out() override { return std::exchange(of_sources_.left_out, {}); }
  bool lists_judge() const override;
  uint64_t digest_ns() const override { return digesting_.took_ns; }
  // The source on this leg brings so much, if there are several; 0: not known.
  uint64_t source_bps(LegId leg) const { return several_ ? several_->rate_bps(leg) : 0; }
  std::vector<recovery::Range> held(ObjectId object) const { return receiver_->held(object); }

 private:
  void make_receiver();
  void put_holes(ObjectId object);
  ObjectId receive_new();  // from this one on
  void note_growth(ObjectId first, Effects& out);
  Status growth_noted(const Status& written, Effects& out);
  void say_ready(Effects& out) const;
  Status follow_receiver(Effects& out);
  void say_need(const recovery::Need& need, Effects& out) const;
  void begin_sync(ObjectId object, Effects& out);
  Status commit(ObjectId object, CommitEvent event, const Status& status, Effects& out);
  void journal_extents(ObjectId object, Effects& out);
  void journal_state(ObjectId object, Entry entry, catalog::FileState state, Durability durability,
                     Effects& out);
  void journal_suspect(ObjectId object, Entry entry, Effects& out);
  void report_durable(ObjectId object, Effects& out);
  void say_durable(ObjectId object, const std::vector<recovery::Range>& durable, Effects& out);
  void say_missing(ObjectId object, LegId leg, Effects& out) const;
  Status named(ObjectId object, Effects& out);
  FileDone file_done(ObjectId object) const;
  // destination_sources.cc: several of them
  void join_source(const Way& way, uint64_t now_ns, Effects& out);
  void want(ObjectId object);
  void tick_source(LegId id, uint64_t bytes, uint64_t now_ns);
  Status follow_sources(Effects& out);
  void forget_wrong(Effects& out);
  void judge_whole(ObjectId object);
  bool settle_sources(ObjectId object, Effects& out);
  Status unsettled(ObjectId object, Effects& out);
  void leave_out_differing(ObjectId object);
  // destination_failures.cc
  Status fail(ObjectId object, const Error& error, Effects& out,
              catalog::Failure failure = catalog::Failure::kNone);
  Status found_damaged(ObjectId object, Effects& out);
  void begin_failing(ObjectId object, const Error& error, Effects& out,
                     catalog::Failure failure = catalog::Failure::kNone);
  Status on(const ObjectFailed& failed);
  Status give_up_failing(Effects& out);
  void give_up(ObjectId object, const std::vector<catalog::FailedName>& names, Effects& out);
  Message failed_word(ObjectId object) const;
  bool waits_for_others(ObjectId object) const;
  bool waits_for_sizes() const;
  Status finish_due(Effects& out);
  Status finish(ObjectId object, Effects& out);
  Error differs(ObjectId object) const;
  Status extent_failed(const board::Event& event, Effects& out);
  void distrust(ObjectId object);
  void note_lost(ObjectId object, Effects& out);
  void read_unread(Effects& out);
  Status unread_was_read(const ObjectReadBack& event, Effects& out);
  void read_back(ObjectId object, uint64_t from, Effects& out);
  Status read_back_for_name(const ObjectReadBack& event, Effects& out);
  // destination_digests.cc: what archives ask for
  digests::Mask to_digest(ObjectId object) const;  // by reading it
  digests::Mask costly_kinds(ObjectId object) const;
  std::optional<sums::ExtentSums> joined_sums(ObjectId object) const;  // once all of it is there
  Error unlike_list(ObjectId object, std::string_view consequence) const;
  Status take_digests(ObjectId object, const digests::Values& read);
  bool fits_list(ObjectId object) const;
  void note_digest_progress(const ObjectReadBack& event, Effects& out);
  void say_digests(ObjectId object, LegId leg, Effects& out) const;
  Status hear_offer(LegId leg, const TransferOffer& part);
  void drop_offers() {
    offers_.clear();
    files_.drop_parts();
  }
  bool offers_wait() const {
    return !offers_.empty() && files_.growth() == GrowthPhase::kNone && !files_.halted();
  }
  void answer_offer(Effects& out);
  // Each source hears what concerns all.
  void say(const Message& message, Effects& out) const {
    legs_.each_begun([&](const DestinationLeg& leg) { leg.say(message, out); });
  }
  void say_on(LegId leg, Message message, Effects& out) const {
    if (legs_.begun(leg)) legs_.find(leg)->say(std::move(message), out);
  }

  const Settings& settings_;
  Agreement agreement_;
  DestinationFiles files_;
  EndLegs<DestinationLeg> legs_;
  std::optional<recovery::Receiver> receiver_;
  std::optional<SeveralSources> several_;  // each is asked for parts
  struct OfSources {
    std::vector<parts::ObjectRange> wrong;  // to be forgotten once no sync concerns them
    std::vector<LeftOut> left_out;          // whose files are not what a list wants
  } of_sources_;
  uint64_t forgettings_ = 0;  // of the receiver, as several_ knows
  Indexed<ObjectId, Commit> commits_;
  std::map<ObjectId, Error> sync_errors_;   // of failed syncs, while the journal is told
  std::map<ObjectId, uint64_t> read_crcs_;  // of files that are read back before they get their names
  struct Digesting {
    std::map<ObjectId, uint64_t> bytes;  // of files that are read for digests, so far
    uint64_t took_ns = 0;
  } digesting_;
  // No file gets its name before each source that is near has said its files: the source that was first may
  // have a broken copy. The wait for a silent one ends after this. Nobody waits for a source that is far: a
  // small file would come sooner without it.
  static constexpr uint64_t kSizesWaitNs = 5'000'000'000;
  struct Due {  // to be given their names
    // Before all sources were heard, or, the last pack, before the others are done.
    std::set<ObjectId> finished;
    uint64_t since_ns = 0;  // since then one waits for sources; 0: none does
    bool waits_no_longer = false;
  } due_;
  std::set<ObjectId> lost_objects_;
  std::deque<TransferOffer> offers_;  // parts of those that were made while another was taken
  LegId offers_on_;                   // the leg on which they came
  struct Failing {
    std::vector<catalog::FailedName> names;
    bool dropping = false;  // its unfinished file is being removed
  };
  // Given up once nothing of them is under way: in this attempt, or in the next, which meets the error again.
  std::map<ObjectId, Failing> failing_;
  std::set<ObjectId> given_;    // have their names (of a pack, some), which is not certain yet
  uint32_t failed_unsaid_ = 0;  // the journal is told first
  std::optional<Error> lost_;
  uint64_t steps_ = 0;
  Pending pending_;
  bool interrupted_ = false;  // once, by a restart or a pause
  bool running_ = false;      // an attempt is
  uint64_t limit_bps_ = 0;    // of the rate, by this node; 0: none
};

}  // namespace sluice::transfer
