// What a sending end has of one leg: the stream to its peer, its share of a path's rate, its lanes, and the
// watch over their path (PathWatch).
//
// Pure. Each attempt agrees upon a rate anew; a limit that an operator of this node set stays.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "control/rate/controller.h"
#include "control/recovery/sender.h"
#include "control/source/path_watch.h"
#include "control/verdict/verdict.h"
#include "control/words/data_end.h"
#include "control/words/end_stream.h"

namespace sluice::transfer {

class SourceLeg : public EndStream {
 public:
  // ---- an attempt ----
  void begin(const DataEnd::Way& way, rate::Paths& paths, uint64_t now_ns);
  void end();
  // An attempt without lanes only hears how the transfer has ended: nothing is read for it.
  size_t lanes() const { return lane_rates_.size(); }
  bool has_lane(LaneId lane) const { return lane_rates_.contains(lane); }

  // ---- the flows of an earlier life of this control ----
  void ask_work(uint32_t tag, Effects& out);  // of all workers; `tag` tells the answers from those to another
  // A worker says how far its work is. True: it answers ask_work(), and names something that it still has.
  bool hear_work(const board::Event& event);
  bool adopting() const { return work_answers_ != 0; }

  // ---- the rate ----
  // kStalled when the path does not carry what is sent, or shorter chunks bring more.
  Status step(const Tick& event, const recovery::Sender& sender, rate::Paths& paths, uint64_t now_ns,
              Effects& out);
  void allow(uint64_t limit_bps);           // the most by this node; 0: as agreed upon
  void peer_allows(uint64_t limit_bps);     // the same by the destination, on this stream
  void on_new_stream() { peer_allows(0); }  // a limit that still holds is said again
  // The rate on the wire that the session needs to be in time; 0: it takes what there is.
  void reserve(uint64_t reserved_bps) {
    if (rate_ != nullptr) rate_->reserve(reserved_bps);
  }
  const rate::Share* rate() const { return rate_.get(); }
  uint64_t agreed_bps() const { return caps_.agreed_bps; }
  verdict::LimitOf cap_of() const;  // who set the most that it may send

  // The peer lists what it has stored, on each stream: objects that are done, or have failed.
  void list(ObjectId object) { listed_.insert(object); }
  std::set<ObjectId> take_listed() { return std::exchange(listed_, {}); }
  // The leg is about to join others: what was done by then the peer must list here. Nothing: it did not join.
  void note_done(std::set<ObjectId> done) { done_before_ = std::move(done); }
  std::optional<std::set<ObjectId>> take_done() { return std::exchange(done_before_, std::nullopt); }

  // Bytes that these flows have brought, as of the last tick.
  uint64_t flows_done() const { return flows_done_; }
  size_t command_backlog() const { return command_backlog_; }

 private:
  uint64_t cap_bps() const;
  static constexpr uint64_t kWarnNs = 10 * kSecondNs;  // between two lines about what holds the rate
  void warn_of_rate(uint64_t rate_bps, uint64_t now_ns, Effects& out);
  void control_rate(const Tick& event, const recovery::Sender& sender, uint64_t now_ns, Effects& out);

  std::unique_ptr<rate::Share> rate_;
  struct Warned {
    uint64_t at_ns = 0;
    uint64_t unsaid = 0;  // changes since then
  } warned_;
  struct Caps {
    uint64_t agreed_bps = 0;
    uint64_t own_bps = 0;   // that this node set since; 0: none
    uint64_t peer_bps = 0;  // that the destination set; 0: none
  } caps_;
  PathWatch path_;                        // does it carry the chunks?
  Indexed<LaneId, uint64_t> lane_rates_;  // as they were set
  bool ramps_ = true;                     // likewise, of all
  uint64_t flows_done_ = 0;
  size_t command_backlog_ = 0;
  uint32_t work_answers_ = 0;  // lanes that have still to say what they hold
  uint32_t work_tag_ = 0;
  std::set<ObjectId> listed_;  // of the ObjectStates of this stream, so far
  std::optional<std::set<ObjectId>> done_before_;
};

}  // namespace sluice::transfer
