// A sending end whose list of files is still read: what is found goes into the journal, into the catalog and
// to the peer, in this order. Nothing of a file moves before the peer has answered for it.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "control/source/source_end.h"
#include "control/words/bounds.h"

namespace sluice::transfer {

bool allowed(ListPhase from, ListPhase to) {
  using P = ListPhase;
  switch (to) {
    case P::kIdle:
      return from != P::kNoting;
    case P::kReading:
      return from == P::kIdle;
    case P::kFound:
      return from == P::kReading || from == P::kNoting;
    case P::kNoting:
      return from == P::kFound;
    case P::kOffering:  // from its end: so the journal has it
      return from == P::kNoting || from == P::kOffered || from == P::kEnded;
    case P::kOffered:
      return from == P::kOffering;
    case P::kEnded:
      return from == P::kFound || from == P::kOffering || from == P::kOffered || from == P::kEnded;
  }
  return false;
}

Status SourceEnd::check_room(uint64_t bytes, const std::vector<catalog::File>& more, uint32_t extent_bytes) {
  for (const catalog::File& file : more) bytes += std::min(file.size_bytes, kSessionBytesMax + 1);
  return check_bytes(bytes, extent_bytes);
}

// Whatever the attempt: the list belongs to the transfer.
Status SourceEnd::on(const ListRead& event) {
  if (!event.files) {
    list_.phase.change(ListPhase::kIdle);
    return event.files.error();
  }
  list_.found = *event.files;
  list_.found_end = event.ended;
  list_.phase.change(list_.found.empty() && !event.ended ? ListPhase::kIdle : ListPhase::kFound);
  if (Status status = check_room(catalog().bytes_total(), list_.found, extent_bytes_); !status) return status;
  if (catalog().file_count() + list_.found.size() <= catalog::kFilesMax) return {};
  return Error{ErrorCode::kUsage,
               fmt::format("more than {} files that are large, or named one by one: a session takes no more; "
                           "send parts of them by themselves",
                           catalog::kFilesMax)};
}

// As the journal keeps them, and as they are offered.
void SourceEnd::trim_holes(std::vector<catalog::File>* files) const {
  size_t left = catalog::kHolesOfAllMax;
  for (const catalog::File& file : catalog().files()) left -= std::min(left, file.holes.size());
  for (catalog::File& file : *files) {
    if (!list_.holes) file.holes.clear();
    file.holes = catalog::whole_extents(file.holes, file.size_bytes, extent_bytes_);
    file.holes.resize(std::min(file.holes.size(), left));
    left -= file.holes.size();
  }
}

// Writes what was found into the journal; found_noted() adds it to the catalog.
void SourceEnd::note_found(Effects& out) {
  if (list_.phase != ListPhase::kFound || !may_grow()) return;
  trim_holes(&list_.found);
  Batch batch;
  catalog::FileId id(static_cast<uint32_t>(catalog().file_count()));
  for (catalog::File& file : list_.found) {
    file.list = catalog::ListState::kGrowing;
    batch.files.push_back({.file = id++, .record = file});
  }
  if (batch.files.empty()) {  // the last one says that the list has ended
    const catalog::FileId last(static_cast<uint32_t>(catalog().file_count() - 1));
    batch.files.push_back({.file = last, .record = catalog().file(last)});
  }
  if (list_.found_end) batch.files.back().record.list = catalog::ListState::kEnded;
  list_.phase.change(ListPhase::kNoting);
  pending_.ask(
      WriteJournal{.entry = Entry::kGrown, .batch = std::move(batch), .durability = Durability::kPower}, out);
}

// Files that the journal did not take are not offered: a restarted control could find others.
Status SourceEnd::found_noted(const Status& written) {
  list_.phase.change(written ? ListPhase::kOffering : ListPhase::kFound);
  if (written) add(std::exchange(list_.found, {}));
  return written;
}

void SourceEnd::add(const std::vector<catalog::File>& files) {
  const ObjectId first(static_cast<uint32_t>(catalog().object_count()));
  for (const catalog::File& file : files) {
    files_.add(file);
    sender_.add({.size_bytes = file.size_bytes, .extent_bytes = extent_bytes_, .crc_kind = crc_kind_});
  }
  if (list_.holes) note_holes(first);
  files_.catalog().set_list(list_.found_end ? catalog::ListState::kEnded : catalog::ListState::kGrowing);
}

void SourceEnd::take_found() {
  if (list_.phase != ListPhase::kFound) return;
  add(std::exchange(list_.found, {}));
  sender_.peer_knows(sender_.objects());  // it will, before anything moves
  list_.phase.change(list_.found_end ? ListPhase::kEnded : ListPhase::kIdle);
  if (list_.found_end) files_.catalog().set_list(catalog::ListState::kWhole);
}

Status SourceEnd::keep_list(const Request* request, Effects& out) {
  note_found(out);
  if (list_.phase != ListPhase::kOffering || !may_grow()) return {};
  const SourceLeg* up = nullptr;
  legs_.each_begun([&](const SourceLeg& leg) {
    if (up == nullptr && leg.up()) up = &leg;
  });
  if (up == nullptr) return {};
  list_.phase.change(ListPhase::kOffered);
  list_.offered_on = up->id();
  for (TransferOffer& part : offer(request, sender_.known())) up->say(std::move(part), out);
  return {};
}

// The answer to another offer than the one that is waited for came late, on another stream.
Status SourceEnd::more_ready(const TransferReady& ready, Effects& out) {
  const bool its_answer = ready.objects == catalog().object_count() && ready.growing == catalog().growing();
  if (list_.phase != ListPhase::kOffered || !its_answer) return {};
  const size_t first = sender_.known();
  for (size_t i = 0; i < ready.final_paths.size() && first + i < catalog().file_count(); ++i) {
    files_.catalog().file(catalog::FileId(static_cast<uint32_t>(first + i))).peer_path = ready.final_paths[i];
  }
  sender_.peer_knows(catalog().object_count());
  list_.phase.change(catalog().growing() ? ListPhase::kIdle : ListPhase::kEnded);
  for (size_t i = first; i < catalog().object_count(); ++i) {
    const ObjectId object(static_cast<uint32_t>(i));
    if (sender_.withdrawn(object)) say_failed(object, out);
  }
  return follow_sender(out);
}

// Files that were found and not noted are found again.
void SourceEnd::released() {
  files_.released();
  list_.found.clear();
  if (list_.phase == ListPhase::kReading || list_.phase == ListPhase::kFound)
    list_.phase.change(ListPhase::kIdle);
}

}  // namespace sluice::transfer
