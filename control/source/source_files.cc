// SPDX-License-Identifier: Apache-2.0
#include "control/source/source_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "dataplane/board/attach.h"

namespace sluice::transfer {

bool allowed(SourcesPhase from, SourcesPhase to) {
  using P = SourcesPhase;
  switch (to) {
    case P::kClosed:
      return true;  // an attempt may end at any point
    case P::kReopening:
      return from == P::kClosed;
    case P::kFetching:
      return from == P::kReopening || from == P::kFetching;
    case P::kReady:
      return from == P::kReopening || from == P::kFetching;
  }
  return false;
}

SourceFiles::SourceFiles(const Settings& settings, const std::vector<catalog::File>& files)
    : settings_(settings) {
  for (const catalog::File& file : files) catalog_.add(file);
  open_.assign(catalog_.object_count(), false);
}

void SourceFiles::reopen(Effects& out) {
  halted_ = adopting_ = false;
  phase_.change(SourcesPhase::kReopening);
  pending_.ask(ReopenSources{}, out);
}

void SourceFiles::adopt(Effects& out) {
  reopen(out);
  adopting_ = true;
}

void SourceFiles::on(const SourcesReopened&, Effects& out) {
  pending_.answered();
  for (const catalog::File& file : catalog_.files()) {
    if (!file.suspect) continue;
    out.log(LogLevel::kWarn,
            fmt::format("{}: somebody has it open for writing, or wrote it a moment ago: it is "
                        "read a second time before it counts as sent",
                        file.shown));
  }
  next_ = ObjectId(0);
  if (adopting_) {
    fetch_next(out);
  } else {
    phase_.change(SourcesPhase::kReady);
  }
}

void SourceFiles::fetch_next(Effects& out) {
  // A generated object has no descriptor by which one of a former control could be told.
  while (next_ < open_.end_id() && generated(next_)) ++next_;
  if (next_ < open_.end_id() && !halted_) {
    phase_.change(SourcesPhase::kFetching);
    return pending_.ask(FetchObject{next_}, out);
  }
  next_ = ObjectId(0);
  phase_.change(SourcesPhase::kReady);
}

Status SourceFiles::on(const ObjectFetched& event, Effects& out) {
  pending_.answered();
  open_[event.object] = event.found;
  ++next_;
  fetch_next(out);
  return {};
}

// ---- at the dataplane --------------------------------------------------------------------------

// Those that have to be closed before `object` is opened: the one that leaves the window, which may be
// narrower than the dataplane's table, and the one that has its place in that table. They are not always the
// same: what was done before its turn came, as a file that is one hole, was never opened in anybody's place.
std::array<std::optional<ObjectId>, 2> SourceFiles::before(ObjectId object) const {
  const auto back = [object](uint32_t by) {
    return object.value() < by ? std::optional<ObjectId>() : ObjectId(object.value() - by);
  };
  return {back(window()), back(settings_.open_objects_max)};
}

bool SourceFiles::due(const recovery::Sender& sender) const {
  return next_.value() < sender.cursor().value() + settings_.open_ahead && before_are_done(next_, sender);
}

bool SourceFiles::before_are_done(ObjectId object, const recovery::Sender& sender) const {
  return std::ranges::all_of(before(object), [&](const auto& each) { return !each || sender.done(*each); });
}

// True: nothing is in the way of `object`.
bool SourceFiles::make_room_for(ObjectId object, const recovery::Sender& sender, Effects& out) {
  bool free = true;
  for (const std::optional<ObjectId>& each : before(object)) {
    if (!each || !open_[*each]) continue;
    free = false;
    if (sender.done(*each)) close(*each, out);
  }
  return free;
}

void SourceFiles::close(ObjectId object, Effects& out) {
  if (!closing_.insert(object).second) return;
  pending_.ask(CloseObject{object}, out);
}

void SourceFiles::open(ObjectId object, Effects& out) {
  opening_ = true;
  pending_.ask(OpenObject{.object = object,
                          .flags = generated(object) ? uint32_t{board::kObjectGenerate} : 0,
                          .size_bytes = catalog_.object(object).size_bytes,
                          .extent_bytes = extent_bytes_,
                          .may_exist = adopting_ && generated(object)},
               out);
}

// The peer asks for objects in any order, as far as they may be open at the same time.
void SourceFiles::open_wanted(recovery::Sender* sender, Effects& out) {
  const std::set<ObjectId> wanted = sender->to_open();
  for (const ObjectId object : wanted) {
    if (opening_ || halted_ || !prepared()) return;
    if (open_[object]) {
      sender->object_opened(object);
    } else if (before_are_done(object, *sender) && make_room_for(object, *sender, out)) {
      open(object, out);
    }
  }
}

void SourceFiles::open_next(uint32_t extent_bytes, recovery::Sender* sender, Effects& out) {
  extent_bytes_ = extent_bytes;
  if (sender->obeys_wants()) return open_wanted(sender, out);
  while (!opening_ && !halted_ && prepared() && next_ < open_.end_id()) {
    if (catalog_.object(next_).size_bytes == 0 || sender->done(next_) || sender->withdrawn(next_)) {
      make_room_for(next_, *sender, out);
      ++next_;
      continue;
    }
    if (next_.value() >= sender->known() || !due(*sender)) return;
    if (open_[next_]) {
      sender->object_opened(next_++);
      continue;
    }
    if (!make_room_for(next_, *sender, out)) return;  // that is under way, and asks again then
    open(next_, out);
  }
}

void SourceFiles::done(ObjectId object, const recovery::Sender& sender, Effects& out) {
  if (halted_ || !prepared() || !open_[object]) return;
  // Of others, those whose successor was passed over, or may never be asked for: nobody else would close
  // them.
  if (catalog_.packed(object) || sender.obeys_wants() || object.plus(window()) < next_) close(object, out);
}

void SourceFiles::on(const ObjectClosed& event, recovery::Sender* sender, Effects& out) {
  pending_.answered();
  open_[event.object] = false;
  closing_.erase(event.object);
  open_next(extent_bytes_, sender, out);
}

Status SourceFiles::on(const ObjectOpened& event, recovery::Sender* sender, Effects& out) {
  pending_.answered();
  opening_ = false;
  if (!event.status) return event.status;
  open_[event.object] = true;
  open_next(extent_bytes_, sender, out);
  return {};
}

void SourceFiles::attempt_over() {
  pending_.check_none();
  phase_.change(SourcesPhase::kClosed);
  open_.assign(open_.size(), false);
  next_ = ObjectId(0);
  opening_ = false;
  closing_.clear();
}

}  // namespace sluice::transfer
