// The sending end of a transfer: what each lane gets, what the peer has, and what the journal keeps of both.
// recovery::Sender decides what to send, SourceLeg how fast. SourceFiles has the files open in time, and
// SourceRecheck reads again what may have changed.
//
// Pure. An error that a function returns ends the attempt; it is the only way in which one is told.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "control/board/figures.h"
#include "control/recovery/sender.h"
#include "control/source/source_files.h"
#include "control/source/source_leg.h"
#include "control/source/source_recheck.h"
#include "control/words/data_end.h"
#include "control/words/end_legs.h"
#include "control/words/pending.h"

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

class SourceEnd final : public DataEnd {
 public:
  // Extent size and CRC kind are those of the first agreement, for ever.
  // kResources: more bytes than a session takes.
  static Result<SourceEnd> make(const ThisNode& settings, const Agreement& agreement,
                                const std::vector<catalog::File>& files);
  // From the journal: kStorage when its rows make no sense.
  static Result<SourceEnd> restore(const ThisNode& settings, const Agreement& agreement, const Saved& saved);

  static constexpr size_t kEchoFaultsMax = 4096;

  SourceFiles& files() { return files_; }
  const SourceFiles& files() const { return files_; }
  // The first echoes that came back damaged (board::EventKind::kEchoFault).
  const std::vector<board::Event>& echo_faults() const { return echo_faults_; }

  // ---- an attempt ----
  // A leg joins: what it offers is about to be said.
  void note_told(LegId leg);
  // In parts, from this file on.
  std::vector<TransferOffer> offer(const Request* request, size_t from = 0) const;
  Status take_ready(const TransferReady& ready, size_t lanes);
  // ---- a list that is growing (source_list.cc) ----
  ListPhase list() const { return list_.phase; }
  bool wants_list() const override { return list_.phase == ListPhase::kIdle && may_grow(); }
  void reading_list() { list_.phase.change(ListPhase::kReading); }
  Status keep_list(const Request* request, Effects& out) override;
  // Before the first offer, to a peer that is to have the whole list at once: straight into the catalog.
  void take_found();
  bool waits_for_list() const override {
    return list_.phase != ListPhase::kEnded && sender_.all_known_done();
  }

  // ---- as DataEnd says ----
  void start_attempt(const Way& way, uint64_t now_ns, Effects& out) override;
  bool running() const override { return running_; }
  bool may_join() const override { return list_.phase == ListPhase::kEnded && !sender_.obeys_wants(); }
  void leave(LegId leg, Effects& out) override;
  void left(LegId /*leg*/, Effects& /*out*/) override {}
  // Only a handshake tells how much of a list that grew the peer has heard.
  bool may_adopt() const override { return !catalog().grew(); }
  void adopt_files(Effects& out) override { files_.adopt(out); }
  bool prepared() const override { return files_.prepared(); }
  void adopt_work(const Way& way, std::span<const board::FlowSlot* const> lanes, uint32_t tag,
                  uint64_t now_ns, Effects& out) override;
  bool adopting() const override;
  void on_new_stream(LegId leg) override;
  bool has_states() const override { return false; }
  void send_states(LegId /*leg*/, Effects& /*out*/) const override {}
  void limit_rate(uint64_t limit_bps, Effects& out) override;
  void halt() override { files_.halt(); }
  void settle(Effects& out) override { journal_extents(out); }
  void attempt_over() override;
  void released() override;  // and the list that was read
  std::vector<recovery::Block> take_rows(ObjectId object) override { return sender_.take_changed(object); }
  void check_invariants() const override;

  // ---- what is told ----
  Status on_message(LegId leg, const Message& message, Effects& out) override;
  Status on(const FlowEvent& event, Effects& out) override;
  Status on(const Tick& event, uint64_t now_ns, Effects& out) override;
  Status on(const ObjectOpened& event, Effects& out) override;
  Status on(const ObjectClosed& event, Effects& out) override;
  Status on(const ObjectFetched& event, Effects& out) override { return files_.on(event, out); }
  Status on(const JournalWritten& event, Effects& out) override;
  Status on(const SourcesReopened& event, Effects& out);
  Status on(const ListRead& event);
  Status on(const SourceChecked& event, Effects& out);
  Status on(const ExtentsRead& event, Effects& out);

  // ---- what it knows ----
  const catalog::Catalog& catalog() const override { return files_.catalog(); }
  bool complete() const override { return list_.phase == ListPhase::kEnded && sender_.all_done(); }
  std::optional<Error> lost() const override { return std::nullopt; }
  bool peer_ended(LegId leg) const override { return legs_.peer_ended(leg); }
  bool peer_ended() const override { return legs_.peer_ended(); }
  uint32_t pending() const override { return files_.pending() + pending_.count(); }
  uint64_t steps() const override { return sender_.steps() + recheck_.steps() + digests_.steps; }
  uint64_t bytes_done(const board::FlowFigures& figures) const override;
  uint64_t bytes_done(ObjectId object) const override;
  bool bytes_are_certain() const override { return states_known_; }
  bool done(ObjectId object) const override { return sender_.done(object); }
  Digests digests(ObjectId object) const override;
  uint64_t digest_ns() const override { return digests_.took_ns; }
  bool leaves_files() const override { return false; }
  std::string waiting_for(const board::FlowFigures& before, const board::FlowFigures& now,
                          uint64_t interval_ns, uint64_t now_ns) const override;
  bool told_of_done() const;  // by the peer, of any
  bool all_sent() const;      // once, each byte
  // The share of a path's rate that a leg has; nullptr: no data moves there.
  const rate::Share* rate(LegId leg) const {
    return legs_.find(leg) == nullptr ? nullptr : legs_.find(leg)->rate();
  }
  verdict::LimitOf cap_of(LegId leg) const { return legs_.find(leg)->cap_of(); }  // it has a rate
  // The rate on the wire that the session needs to be in time, all legs together; 0: it takes what there is.
  void reserve(uint64_t reserved_bps);

 private:
  SourceEnd(const ThisNode& settings, const Agreement& agreement, const std::vector<catalog::File>& files);
  // Before anything is made that grows with their number of bytes.
  static Status check_room(uint64_t bytes, const std::vector<catalog::File>& more, uint32_t extent_bytes);
  void note_holes(ObjectId from = ObjectId());
  void trim_holes(std::vector<catalog::File>* files) const;
  bool has_lanes() const;  // of a leg on which an attempt is under way
  bool may_grow() const { return has_lanes() && !files_.halted(); }
  uint64_t share_of(uint64_t limit_bps, size_t legs) const;
  void note_found(Effects& out);
  void add(const std::vector<catalog::File>& files);
  Status found_noted(const Status& written);
  Status more_ready(const TransferReady& ready, Effects& out);
  Status check(LegId leg, const Message& message) const;
  Status check_object(const Message& message, ObjectId object) const;
  void note_failures(const FileDone& done);
  // source_failures.cc
  Status fail(ObjectId object, const Error& error, const std::vector<catalog::FailedName>& names,
              Effects& out);
  Status found_changed(ObjectId object, Effects& out);
  void say_failed(ObjectId object, Effects& out) const;
  Status check_withdrawn(ObjectId object) const;
  Error undone(ObjectId object) const;  // the peer had it, and does not have it any more
  Status hear_failed(LegId leg, const ObjectFailed& failed, Effects& out);
  Status object_state(LegId leg, const ObjectState& state, Effects& out);
  void open_next(Effects& out);
  Status states_end(LegId leg, Effects& out);
  Status follow_sender(Effects& out);
  void check_source(ObjectId object, std::optional<Error> otherwise, Effects& out);
  Status rechecked(ObjectId object, uint64_t crc, Effects& out);
  void say_digest(ObjectId object, Effects& out);
  // source_digests.cc: what archives ask for, computed by the destination
  Status hear(LegId leg, const NameDigests& part);
  Status hear(const DigestProgress& progress);
  Status check_digested(ObjectId object) const;
  void forget_digests_of(LegId leg);
  // source_parts.cc
  Status check_wanted(const Message& message, ObjectId object) const;
  Status hear_want(const Want& want, Effects& out);
  Status hear_digests_wanted(const DigestsWanted& wanted, Effects& out);
  void look(uint64_t now_ns, Effects& out);
  void forget_looks();
  void say_extents(ObjectId object, Effects& out);
  bool in_doubt(ObjectId object) const;
  Error differs(ObjectId object) const;
  Error changed(ObjectId object) const;
  void reread(Effects& out);
  std::optional<ReadExtents> read_unknown();
  void journal_extents(Effects& out);
  void begin(const Way& way, uint64_t now_ns);
  // On each leg: it is one peer that hears it, by whichever stream comes through.
  void say(const Message& message, Effects& out) const {
    legs_.each_begun([&](const SourceLeg& leg) { leg.say(message, out); });
  }

  const ThisNode& settings_;
  SourceFiles files_;
  uint32_t extent_bytes_ = 0;
  wire::CrcKind crc_kind_{};
  EndLegs<SourceLeg> legs_;
  recovery::Sender sender_;
  SourceRecheck recheck_;
  struct Looks {  // at objects of which the peer is to hear digests of extents
    std::map<ObjectId, recovery::DigestDesk::Batch> batches;  // under way, with what was read before
    uint64_t due_ns = 0;
    uint64_t read_again_ns = 0;  // when the last one began for which an object is read again
  } looks_;
  struct List {
    Phase<ListPhase> phase{ListPhase::kEnded};
    std::vector<catalog::File> found;  // kFound, kNoting
    bool found_end = false;
    bool holes = true;  // they need not be sent
    LegId offered_on;   // kOffered
  } list_;
  struct Digesting {
    bool agreed = false;  // the destination computes some
    // Names of objects, as far as they were told on a leg.
    std::map<std::pair<LegId, ObjectId>, std::vector<digests::Named>> parts;
    std::set<ObjectId> known;               // all of it was told
    std::map<ObjectId, uint64_t> progress;  // bytes of files that are being read
    uint64_t took_ns = 0;
    uint64_t steps = 0;
  } digests_;
  uint64_t held_at_start_ = 0;  // by the peer, before these flows
  uint64_t journal_due_ns_ = 0;
  Pending pending_;
  bool journalling_ = true;  // or files are not agreed upon yet, and it does not know them
  bool rereading_ = false;
  bool recheck_next_ = false;
  bool states_known_ = false;  // in this attempt the peer has said what it holds
  bool running_ = false;       // an attempt is
  bool joined_ = false;        // in it a second leg was begun
  uint64_t limit_bps_ = 0;     // of the rate, by this node; 0: none
  std::vector<board::Event> echo_faults_;
};

}  // namespace sluice::transfer
