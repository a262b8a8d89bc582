// The files of a sending end: opened and checked, found again, and open at the dataplane in their turn.
//
// Pure: it asks for what it needs (effects.h) and is told how that ended. The dataplane takes object numbers
// modulo open_objects_max, so object n is opened when n - open_objects_max is done, and a little ahead of its
// turn (open_ahead), so that no lane waits for it. For a sender that obeys wants an object is opened when
// something of it is asked for, and closed when it is done.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <set>
#include <vector>

#include "control/recovery/sender.h"
#include "control/words/effects.h"
#include "control/words/events.h"
#include "control/words/pending.h"
#include "control/words/phase.h"
#include "control/words/terms.h"

namespace sluice::transfer {

enum class SourcesPhase : uint8_t {
  kClosed,     // a restarted control has not looked for them yet
  kReopening,  // those that are not open; each must be the file that is known
  kFetching,   // is it open at the dataplane?
  kReady,
};
bool allowed(SourcesPhase from, SourcesPhase to);

class SourceFiles {
 public:
  SourceFiles(const Settings& settings, const std::vector<catalog::File>& files);

  // One more, behind the others; it is open.
  void add(const catalog::File& file) {
    catalog_.add(file);
    open_.push_back(false);
  }
  // What is not open is opened; then prepared(), or an error.
  void reopen(Effects& out);
  // Also asks which objects an earlier life of this control has open at the dataplane.
  void adopt(Effects& out);
  void halt() { halted_ = true; }
  void attempt_over();

  void on(const SourcesReopened& event, Effects& out);  // of those that could be
  void not_reopened() { pending_.answered(); }
  Status on(const ObjectFetched& event, Effects& out);
  Status on(const ObjectOpened& event, recovery::Sender* sender, Effects& out);
  void on(const ObjectClosed& event, recovery::Sender* sender, Effects& out);

  // The peer has it: a pack is in memory no longer than it must.
  void done(ObjectId object, const recovery::Sender& sender, Effects& out);
  // Opens the next object whose turn has come, and tells the sender of those that are open.
  void open_next(uint32_t extent_bytes, recovery::Sender* sender, Effects& out);
  void released() { phase_.change(SourcesPhase::kClosed); }

  bool halted() const { return halted_; }
  bool prepared() const { return phase_ == SourcesPhase::kReady; }
  bool generated(ObjectId object) const { return catalog_.files_of(object).front().path.empty(); }
  uint32_t pending() const { return pending_.count(); }
  const catalog::Catalog& catalog() const { return catalog_; }
  catalog::Catalog& catalog() { return catalog_; }

 private:
  void fetch_next(Effects& out);
  std::array<std::optional<ObjectId>, 2> before(ObjectId object) const;
  bool make_room_for(ObjectId object, const recovery::Sender& sender, Effects& out);
  void close(ObjectId object, Effects& out);
  bool due(const recovery::Sender& sender) const;
  bool before_are_done(ObjectId object, const recovery::Sender& sender) const;
  void open_wanted(recovery::Sender* sender, Effects& out);
  void open(ObjectId object, Effects& out);
  uint32_t window() const { return catalog_.open_at_most(settings_.open_objects_max); }

  const Settings& settings_;
  catalog::Catalog catalog_;
  Phase<SourcesPhase> phase_{SourcesPhase::kClosed};
  Indexed<ObjectId, bool> open_;  // at the dataplane
  ObjectId next_;                 // to be opened, or fetched
  uint32_t extent_bytes_ = 0;
  Pending pending_;
  std::set<ObjectId> closing_;  // CloseObject was asked for
  bool opening_ = false;        // one object is being opened
  bool adopting_ = false;
  bool halted_ = false;
};

}  // namespace sluice::transfer
