// One end of a transfer: what is moved, at the node that sends it or at the one that receives it.
//
// Pure. The transfer and its legs see either end through this interface. They ask for the source or the
// destination only where files are agreed upon (handshake), recovered, shown or judged. An end outlives every
// attempt. An error that a function returns ends the attempt; lost() is the error with which the transfer
// ends.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "control/board/figures.h"
#include "control/words/events.h"
#include "control/words/peer_stream.h"
#include "control/words/terms.h"

namespace sluice::transfer {

class DataEnd {
 public:
  // A leg on which data is to move from now on. What it refers to outlives the attempt.
  struct Way {
    const std::string& peer_name;
    PeerStream& stream;
    const Agreement& agreement;
    size_t lanes = 0;           // 0: the end only hears how the transfer has ended
    uint64_t rtt_ns = 0;        // of the control stream, about; 0: not known
    uint64_t expected_bps = 0;  // what the path has brought of late, of data; 0: not known
    uint64_t seed = 0;  // of the session: by it extents are chosen that several sources must agree about
  };
  // Digests that are known of an object.
  struct Digests {
    std::optional<uint64_t> source;
    std::optional<uint64_t> destination;
  };

  virtual ~DataEnd() = default;

  // ---- an attempt ----
  // Data is to move on this leg. The first leg begins an attempt of the end; others join it and leave it.
  virtual void start_attempt(const Way& way, uint64_t now_ns, Effects& out) = 0;
  virtual bool running() const = 0;   // an attempt was begun, and is not over
  virtual bool may_join() const = 0;  // then: may another leg make its handshake? Not while a list grows
  // The attempt of this leg ends while others go on. leave(): nothing new is given to its flows. left(): they
  // have ended.
  virtual void leave(LegId leg, Effects& out) = 0;
  virtual void left(LegId leg, Effects& out) = 0;
  // The flows of an earlier life of this control go on: may they? Then their files are found again.
  virtual bool may_adopt() const = 0;
  virtual void adopt_files(Effects& out) = 0;
  virtual bool prepared() const = 0;  // each file that is needed is open at this node
  // Their workers are asked what they have. `tag` tells the answers from those to another control.
  virtual void adopt_work(const Way& way, std::span<const board::FlowSlot* const> lanes, uint32_t tag,
                          uint64_t now_ns, Effects& out) = 0;
  virtual bool adopting() const = 0;  // not all have answered
  // The stream of the leg was opened again: what was said on the former one may be lost.
  virtual void on_new_stream(LegId leg) = 0;
  // On each stream the peer hears what it need not send. That covers every event of the board that came
  // before.
  virtual bool has_states() const = 0;
  virtual void send_states(LegId leg, Effects& out) const = 0;
  // Goes on with a list of files that is still read. `request`: of an operator of this node.
  virtual Status keep_list(const Request* request, Effects& out) = 0;
  virtual bool wants_list() const = 0;      // more of it is to be read
  virtual bool waits_for_list() const = 0;  // nothing else is left to do
  // The most that this node allows, all legs together. The rate that was agreed upon bounds it as well; 0:
  // that alone does.
  virtual void limit_rate(uint64_t limit_bps, Effects& out) = 0;
  // The attempt of the last leg ends in three steps. halt(): what is under way ends, and nothing new is
  // begun. settle(): its flows have ended, and what they brought becomes durable. attempt_over(): nothing is
  // under way.
  virtual void halt() = 0;
  virtual void settle(Effects& out) = 0;
  virtual void attempt_over() = 0;
  virtual void released() = 0;  // every descriptor was let go of

  // ---- what is told ----
  virtual Status on_message(LegId leg, const Message& message, Effects& out) = 0;
  virtual Status on(const FlowEvent& event, Effects& out) = 0;
  virtual Status on(const Tick& event, uint64_t now_ns, Effects& out) = 0;
  virtual Status on(const ObjectOpened& event, Effects& out) = 0;
  virtual Status on(const ObjectClosed& event, Effects& out) = 0;
  virtual Status on(const ObjectFetched& event, Effects& out) = 0;
  virtual Status on(const JournalWritten& event, Effects& out) = 0;

  // ---- what it knows ----
  virtual const catalog::Catalog& catalog() const = 0;
  virtual bool complete() const = 0;
  virtual std::optional<Error> lost() const = 0;  // it cannot be a success any more
  virtual bool peer_ended(LegId leg) const = 0;   // its peer has said that all is done
  virtual bool peer_ended() const = 0;            // some peer has
  virtual uint32_t pending() const = 0;           // was asked for, and is not answered
  virtual uint64_t steps() const = 0;             // changes with every step forward
  virtual uint64_t bytes_done(const board::FlowFigures& figures) const = 0;
  virtual uint64_t bytes_done(ObjectId object) const = 0;
  virtual bool bytes_are_certain() const = 0;  // a source knows once its peer has said what it has
  virtual bool done(ObjectId object) const = 0;
  virtual Digests digests(ObjectId object) const = 0;
  struct LeftOut {
    LegId leg;
    Error error;
  };
  // Sources whose file is not what a list wants, since the last call: their legs end, and the others go on.
  virtual std::vector<LeftOut> take_left_out() { return {}; }
  // A list says what each file comes to that may be of several: no wrong byte of a source gets a name unseen.
  virtual bool lists_judge() const { return false; }
  virtual uint64_t digest_ns() const = 0;  // that the destination read files for the digests of archives
  virtual bool leaves_files() const = 0;   // unfinished ones, which must go when it fails
  virtual std::vector<recovery::Block> take_rows(ObjectId object) = 0;  // that the journal does not know
  virtual void check_invariants() const = 0;                            // where DCHECKs are on
  virtual std::string waiting_for(const board::FlowFigures& before, const board::FlowFigures& now,
                                  uint64_t interval_ns, uint64_t now_ns) const = 0;
};

}  // namespace sluice::transfer
