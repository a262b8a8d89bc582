// SPDX-License-Identifier: Apache-2.0
#include "control/transfer/source_files.h"

#include <fmt/format.h>

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

bool SourceFiles::due(const recovery::Sender& sender) const {
  const uint32_t ahead = window();
  return next_.value() < sender.cursor().value() + settings_.open_ahead &&
         (next_.value() < ahead || sender.done(ObjectId(next_.value() - ahead)));
}

void SourceFiles::open_next(uint32_t extent_bytes, recovery::Sender* sender, Effects& out) {
  extent_bytes_ = extent_bytes;
  while (!opening_ && !halted_ && prepared() && next_ < open_.end_id()) {
    if (catalog_.object(next_).size_bytes == 0 || sender->done(next_) || sender->withdrawn(next_)) {
      ++next_;
      continue;
    }
    if (next_.value() >= sender->known() || !due(*sender)) return;
    if (open_[next_]) {
      sender->object_opened(next_++);
      continue;
    }
    opening_ = true;
    const uint32_t ahead = window();
    const ObjectId before(next_.value() - std::min(next_.value(), ahead));
    if (next_.value() >= ahead && closing_.contains(before)) {  // it is under way, and asks again then
      opening_ = false;
      return;
    }
    if (next_.value() >= ahead && open_[before]) return pending_.ask(CloseObject{before}, out);
    pending_.ask(OpenObject{.object = next_,
                            .flags = generated(next_) ? uint32_t{board::kObjectGenerate} : 0,
                            .size_bytes = catalog_.object(next_).size_bytes,
                            .extent_bytes = extent_bytes,
                            .may_exist = adopting_ && generated(next_)},
                 out);
  }
}

void SourceFiles::done(ObjectId object, Effects& out) {
  if (halted_ || !prepared() || !catalog_.packed(object) || !open_[object] || closing_.contains(object))
    return;
  closing_.insert(object);
  pending_.ask(CloseObject{object}, out);
}

void SourceFiles::on(const ObjectClosed& event, recovery::Sender* sender, Effects& out) {
  pending_.answered();
  open_[event.object] = false;
  if (closing_.erase(event.object) == 0) opening_ = false;
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
