// Which objects of a receiving end are open at the dataplane, where each number is used again and again.
// SPDX-License-Identifier: Apache-2.0
#include "control/destination/destination_files.h"
#include "control/destination/digest_sums.h"
#include "dataplane/board/attach.h"

namespace sluice::transfer {

// The window may be narrower than the dataplane's table, in which objects have places by their numbers: then
// an object that was passed over leaves one that is far before it open.
bool DestinationFiles::turn(ObjectId object) const {
  const auto left = [&](uint32_t by) {
    if (object.value() < by) return true;
    const Holding& before = holdings_[ObjectId(object.value() - by)];
    return before.done && !before.open && !before.opening;
  };
  return left(window()) && left(settings_.open_objects_max);
}

void DestinationFiles::open(ObjectId object, Effects& out) {
  holdings_[object].opening = true;
  pending_.ask(OpenObject{.object = object,
                          .flags = board::kObjectWrite | (discard_ ? board::kObjectDiscard : 0U),
                          .size_bytes = catalog_.object(object).size_bytes,
                          .extent_bytes = extent_bytes_,
                          .sums = sums_of(object)},
               out);
}

// A file that is read as a whole anyway is summed by that reading.
sums::Mask DestinationFiles::sums_of(ObjectId object) const {
  const catalog::File& file = catalog_.files_of(object).front();
  if (!joins_ || discard_ || file.packed() || file.suspect || file.verify) return 0;
  return sums_of_kinds(file.digests.wanted & ~own_kind(*joins_) & digests::kAllKinds);
}

Status DestinationFiles::on(const ObjectOpened& event, Effects& out) {
  pending_.answered();
  Holding& holding = holdings_[event.object];
  holding.opening = false;
  if (!event.status) return event.status;
  holding.open = true;
  if (holding.done && !halted_) pending_.ask(CloseObject{event.object}, out);  // it was given up meanwhile
  if (phase_ == FilesPhase::kOpening) walk(out);
  return {};
}

void DestinationFiles::mark_done(ObjectId object) {
  holdings_[object].done = true;
  holdings_[object].has_file = false;
  for (catalog::File& file : catalog_.files_of(object)) file.state = catalog::FileState::kDone;
}

void DestinationFiles::done(ObjectId object, Effects& out) {
  mark_done(object);
  if (!halted_ && phase_ == FilesPhase::kReady && is_to_be_closed(object)) close(object, out);
}

// A pack fills memory, and what has failed a disk, even where nothing waits for its number.
bool DestinationFiles::is_to_be_closed(ObjectId object) const {
  return catalog_.packed(object) || catalog_.files_of(object).front().failed() ||
         holdings_.contains(object.plus(window()));
}

void DestinationFiles::close_ended(Effects& out) {
  for (uint32_t i = 0; i < holdings_.size() && !discard_; ++i) {
    const ObjectId object(i);
    if (holdings_[object].done && holdings_[object].open && is_to_be_closed(object)) close(object, out);
  }
}

void DestinationFiles::close(ObjectId object, Effects& out) {
  if (holdings_[object].open) return pending_.ask(CloseObject{object}, out);
  if (!holdings_[object].opening) open_in_place_of(object, out);
}

void DestinationFiles::mark_failed(ObjectId object) {
  holdings_[object].done = true;
  holdings_[object].has_file = false;
  for (catalog::File& file : catalog_.files_of(object)) file.state = catalog::FileState::kFailed;
}

void DestinationFiles::failed(ObjectId object, Effects& out) {
  mark_failed(object);
  if (!halted_ && phase_ == FilesPhase::kReady) close(object, out);
}

void DestinationFiles::on(const ObjectClosed& event, Effects& out) {
  pending_.answered();
  holdings_[event.object].open = false;
  open_in_place_of(event.object, out);
}

void DestinationFiles::open_in_place_of(ObjectId object, Effects& out) {
  for (const uint32_t by : {window(), settings_.open_objects_max}) {
    const ObjectId next = object.plus(by);
    if (halted_ || !holdings_.contains(next) || !holdings_[next].to_open() || holdings_[next].opening)
      continue;
    if (catalog_.object(next).size_bytes != 0 && turn(next)) open(next, out);
  }
}

bool DestinationFiles::open_no_more(ObjectId object) {
  if (holdings_[object].opening) return false;
  holdings_[object].whole = true;
  return true;
}

}  // namespace sluice::transfer
