// The sending end of a transfer: what is given to which lane, how fast, what the peer has, and what of it all
// the journal keeps. What to send is decided by recovery::Sender, how fast by a rate::Controller, the files
// by SourceFiles.
//
// Pure. An error that a function returns ends the attempt; it is the only way in which one is told.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "control/board/figures.h"
#include "control/rate/controller.h"
#include "control/recovery/sender.h"
#include "control/transfer/control_stream.h"
#include "control/transfer/path_watch.h"
#include "control/transfer/pending.h"
#include "control/transfer/source_files.h"
#include "control/transfer/source_recheck.h"
#include "control/verdict/verdict.h"

namespace sluice::transfer {

// The list of a source's files, which may still be read while data move (source_list.cc).
enum class ListPhase : uint8_t {
  kIdle,      // it is growing, and the peer knows what is in the catalog
  kReading,   // for more: however many attempts that takes
  kFound,     // more was found, of which the journal must know before the peer does
  kNoting,    // it is told
  kOffering,  // the catalog has more than the peer is known to know
  kOffered,   // it was told on this stream
  kEnded,     // and the peer knows all of it
};
bool allowed(ListPhase from, ListPhase to);

class SourceEnd {
 public:
  // Extent size and CRC kind are those of the first agreement, for ever.
  // kResources: more bytes than a session takes.
  static Result<SourceEnd> make(const Settings& settings, const Agreement& agreement,
                                const std::vector<catalog::File>& files);
  // From the journal: kStorage when its rows make no sense.
  static Result<SourceEnd> restore(const Settings& settings, const Agreement& agreement, const Saved& saved);

  SourceFiles& files() { return files_; }
  const SourceFiles& files() const { return files_; }

  // ---- an attempt ----
  // In parts, from this file on.
  std::vector<TransferOffer> offer(const Request* request, size_t from = 0) const;
  Status take_ready(const TransferReady& ready, size_t lanes);
  // ---- a list that is growing ----
  ListPhase list() const { return list_.phase; }
  bool wants_list() const { return list_.phase == ListPhase::kIdle && may_grow(); }
  void reading_list() { list_.phase.change(ListPhase::kReading); }
  // What was found goes into the journal, then into the catalog.
  void note_found(Effects& out);
  bool wants_offer() const { return list_.phase == ListPhase::kOffering && may_grow() && stream_->up(); }
  std::vector<TransferOffer> offer_more(const Request* request);
  // Before the first offer, to a peer that is to have the whole list at once: straight into the catalog.
  void take_found();
  bool waits_for_list() const {  // nothing else is left to do
    return list_.phase != ListPhase::kEnded && sender_.all_known_done();
  }
  void start_attempt(const std::string& peer_name, ControlStream& stream, const Agreement& agreement,
                     size_t lanes, uint64_t now_ns, Effects& out);
  // Flows of an earlier life of this control: their workers are asked what they still have. `tag` tells their
  // answers from those to another control.
  void adopt_work(const std::string& peer_name, ControlStream& stream, const Agreement& agreement,
                  size_t lanes, uint32_t tag, uint64_t now_ns, Effects& out);
  bool adopting() const { return work_answers_ != 0; }
  // A limit of the destination that still holds is said again.
  void on_new_stream();
  void halt() { files_.halt(); }
  void released();  // every descriptor, and the list that was read
  std::vector<recovery::Block> take_rows(ObjectId object) { return sender_.take_changed(object); }
  void settle(Effects& out) { journal_extents(out); }
  void attempt_over();

  // ---- what is told ----
  Status on_message(const Message& message, Effects& out);
  Status on(const FlowEvent& event, Effects& out);
  Status on(const Tick& event, uint64_t now_ns, Effects& out);
  Status on(const ObjectOpened& event, Effects& out);
  Status on(const ObjectClosed& event, Effects& out);
  Status on(const SourcesReopened& event, Effects& out);
  Status on(const ListRead& event);
  Status on(const SourceChecked& event, Effects& out);
  Status on(const ExtentsRead& event, Effects& out);
  Status on(const JournalWritten& event, Effects& out);

  // ---- what it knows ----
  bool complete() const { return list_.phase == ListPhase::kEnded && sender_.all_done(); }
  bool peer_ended() const { return peer_ended_; }
  uint32_t pending() const { return files_.pending() + pending_.count(); }
  const catalog::Catalog& catalog() const { return files_.catalog(); }
  uint64_t bytes_done(const control::FlowFigures& figures) const;
  bool states_known() const { return states_known_; }
  uint64_t bytes_done(ObjectId object) const;
  bool done(ObjectId object) const { return sender_.done(object); }
  bool told_of_done() const;  // by the peer, of any
  std::optional<uint64_t> digest(ObjectId object) const;
  std::optional<uint64_t> peer_digest(ObjectId object) const;
  uint64_t steps() const { return sender_.steps() + recheck_.steps(); }  // changes with every step forward
  const rate::Share* rate() const { return rate_.get(); }
  verdict::LimitOf cap_of() const;  // who set the most that it may send
  bool all_sent() const;            // once, each byte
  // From now on, whatever was agreed upon; 0: as agreed upon.
  void limit_rate(uint64_t limit_bps);
  // It needs so much to be in time, on the wire; 0: it takes what there is.
  void reserve_rate(uint64_t reserved_bps) {
    if (rate_ != nullptr) rate_->reserve(reserved_bps);
  }
  std::string waiting_for(const control::FlowFigures& before, const control::FlowFigures& now,
                          uint64_t interval_ns, uint64_t now_ns) const;

 private:
  SourceEnd(const Settings& settings, const Agreement& agreement, const std::vector<catalog::File>& files);
  // Before anything is made that grows with their number of bytes.
  static Status check_room(uint64_t bytes, const std::vector<catalog::File>& more, uint32_t extent_bytes);
  void note_holes(ObjectId from = ObjectId());
  void trim_holes(std::vector<catalog::File>* files) const;
  bool may_grow() const { return stream_ != nullptr && !lane_rates_.empty() && !files_.halted(); }
  void add(const std::vector<catalog::File>& files);
  Status found_noted(const Status& written);
  Status more_ready(const TransferReady& ready, Effects& out);
  Status check(const Message& message) const;
  Status check_object(const Message& message, ObjectId object) const;
  void note_failures(const FileDone& done);
  // source_failures.cc
  Status fail(ObjectId object, const Error& error, const std::vector<catalog::FailedName>& names,
              Effects& out);
  Status found_changed(ObjectId object, Effects& out);
  void say_failed(ObjectId object, Effects& out) const;
  Status check_withdrawn(ObjectId object) const;
  Error lost(ObjectId object) const;
  Status on(const ObjectFailed& failed, Effects& out);
  Status object_state(const ObjectState& state, Effects& out);
  void open_next(Effects& out);
  Status states_end(Effects& out);
  Status follow_sender(Effects& out);
  void check_source(ObjectId object, std::optional<Error> otherwise, Effects& out);
  Status rechecked(ObjectId object, const std::vector<uint64_t>& crcs, Effects& out);
  void say_digest(ObjectId object, Effects& out) const;
  Error differs(ObjectId object) const;
  Error changed(ObjectId object) const;
  uint64_t rate_cap_bps() const;
  void control_rate(const Tick& event, uint64_t now_ns, Effects& out);
  void reread(Effects& out);
  void journal_extents(Effects& out);
  void begin(const std::string& peer_name, ControlStream& stream, const Agreement& agreement, size_t lanes,
             uint64_t now_ns);
  void say(Message message, Effects& out) const {
    if (stream_ != nullptr) stream_->say(std::move(message), out);
  }

  const Settings& settings_;
  SourceFiles files_;
  uint32_t extent_bytes_ = 0;
  wire::CrcKind crc_kind_{};
  ControlStream* stream_ = nullptr;  // of the attempt
  recovery::Sender sender_;
  SourceRecheck recheck_;
  std::unique_ptr<rate::Share> rate_;
  struct Caps {
    uint64_t agreed_bps = 0;
    uint64_t own_bps = 0;   // that an operator of this node set since; 0: none
    uint64_t peer_bps = 0;  // that one of the destination set; 0: none
  } caps_;
  struct List {
    Phase<ListPhase> phase{ListPhase::kEnded};
    std::vector<catalog::File> found;  // kFound, kNoting
    bool found_end = false;
    bool holes = true;  // they need not be sent
  } list_;
  PathWatch path_;                        // does it carry the chunks?
  Indexed<LaneId, uint64_t> lane_rates_;  // as they were set
  uint64_t held_at_start_ = 0;            // by the peer, before these flows
  uint64_t flows_done_ = 0;               // what these flows have brought, as of the last tick
  uint64_t journal_due_ns_ = 0;
  size_t command_backlog_ = 0;
  uint32_t work_answers_ = 0;  // lanes that have still to say what they hold
  uint32_t work_tag_ = 0;
  Pending pending_;
  bool journalling_ = true;  // or files are not agreed upon yet, and it does not know them
  bool rereading_ = false;
  std::set<ObjectId> listed_done_;  // of the ObjectStates of this stream, so far
  bool states_known_ = false;       // in this attempt the peer has said what it holds
  bool peer_ended_ = false;
};

}  // namespace sluice::transfer
