// SPDX-License-Identifier: Apache-2.0
#include "control/destination/destination_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "control/words/failures.h"

namespace sluice::transfer {
namespace {

catalog::File file_of(const OfferedFile& offered, const TransferOffer& offer) {
  return {.name = offered.name,
          .shown = std::string(kNullDestination),
          .size_bytes = offered.size_bytes,
          .mode = offered.mode,
          .mtime_ns = offered.mtime_ns,
          .overwrite = offer.overwrite,
          .verify = offer.verify,
          .kind = offered.kind,
          .pack = {.members = offered.members},
          .holes = offered.holes,
          .keep = selection::Keep::of(offer.keep),
          .attributes = offered.attributes,
          .part = offer.part,
          .digests = {.wanted = offer.digests, .expected = offered.expected, .found = {}}};
}

}  // namespace

bool allowed(FilesPhase from, FilesPhase to) {
  using P = FilesPhase;
  if (to == P::kIdle) return true;  // an attempt may end at any point
  switch (from) {
    case P::kIdle:
      return to == P::kOffer || to == P::kRecovering || to == P::kFetching || to == P::kReopening ||
             to == P::kReady;
    case P::kOffer:
      return to == P::kCreating || to == P::kReopening || to == P::kOpening || to == P::kReady;
    case P::kCreating:
      return to == P::kReopening || to == P::kOpening || to == P::kReady;
    case P::kFetching:
      return to == P::kReopening || to == P::kFetching || to == P::kOpening || to == P::kReady;
    case P::kReopening:
      return to == P::kRecreating || to == P::kReopening || to == P::kFetching || to == P::kOpening ||
             to == P::kReady;
    case P::kRecreating:
      return to == P::kNoting;
    case P::kNoting:
      return to == P::kReopening || to == P::kFetching || to == P::kOpening || to == P::kReady;
    case P::kOpening:
      return to == P::kOpening || to == P::kReady;
    case P::kRecovering:
    case P::kReady:
      return false;
  }
  return false;
}

bool allowed(GrowthPhase from, GrowthPhase to) {
  using G = GrowthPhase;
  if (to == G::kNone) return true;  // an attempt may end at any point
  if (to == G::kCreating) return from == G::kNone;
  return to == G::kNoting ? from == G::kNone || from == G::kCreating : from == G::kNoting;
}

DestinationFiles::DestinationFiles(const Settings& settings, bool discard, uint32_t extent_bytes,
                                   const std::vector<catalog::File>& files,
                                   std::optional<wire::CrcKind> joins)
    : settings_(settings), discard_(discard), extent_bytes_(extent_bytes), joins_(joins) {
  for (const catalog::File& file : files) {
    catalog_.add(file);
    holdings_.push_back({});
  }
}

// ---- files, one after the other ----------------------------------------------------------------

void DestinationFiles::recover(Effects& out) {
  phase_.change(FilesPhase::kRecovering);
  pending_.ask(RecoverFiles{}, out);
}

Status DestinationFiles::on(const FilesRecovered& event, Effects& /*out*/) {
  pending_.answered();
  for (uint32_t i = 0; i < event.objects.size(); ++i) {
    const ObjectId object(i);
    if (event.objects[object] == Recovered::kNamed) mark_done(object);
    holdings_[object].has_file = event.objects[object] == Recovered::kHeld;
  }
  phase_.change(FilesPhase::kIdle);
  return {};
}

void DestinationFiles::prepare(Effects& out) {
  halted_ = adopting_ = false;
  at_ = ObjectId(0);
  std::vector<catalog::File> files = new_files();
  if (files.empty()) {
    end_list();
    return walk(out);
  }
  phase_.change(FilesPhase::kCreating);
  create(std::move(files), out);
}

// The files of the offer that are not in the catalog.
std::vector<catalog::File> DestinationFiles::new_files() const {
  std::vector<catalog::File> files;
  for (const OfferedFile& offered : offer_.files) {
    if (offered.number < catalog_.file_count()) continue;
    files.push_back(file_of(offered, offer_));
    if (offer_.growing || catalog_.grew()) files.back().list = catalog::ListState::kGrowing;
  }
  if (!files.empty() && !offer_.growing && catalog_.grew()) files.back().list = catalog::ListState::kEnded;
  return files;
}

// The peer has said so, without another file.
void DestinationFiles::end_list() {
  if (!offer_.growing && catalog_.growing()) catalog_.set_list(catalog::ListState::kEnded);
}

void DestinationFiles::create(std::vector<catalog::File> files, Effects& out) {
  if (discard_) return created(files, out);
  const bool in_part = files.size() > 1 || files.front().names() > 1 || offer_.growing || catalog_.grew();
  pending_.ask(CreateFiles{.destination = offer_.destination,
                           .into_directory = offer_.into_directory,
                           .in_part = in_part,
                           .mkdir = offer_.mkdir,
                           .files = std::move(files)},
               out);
}

void DestinationFiles::adopt(Effects& out) {
  halted_ = false;
  adopting_ = true;
  at_ = ObjectId(0);
  // A discarded object has no descriptor by which it could be asked for: it was opened, if it had its turn.
  for (uint32_t i = 0; discard_ && i < holdings_.size(); ++i) {
    const ObjectId object(i);
    holdings_[object].open = i < window() && catalog_.object(object).size_bytes != 0;
  }
  walk(out);
}

// Goes on with the next file that lacks something; ready when none does.
void DestinationFiles::walk(Effects& out) {
  if (halted_) return;
  for (; at_ < holdings_.end_id(); ++at_) {
    const Holding& holding = holdings_[at_];
    if (discard_) continue;
    // Also of what has ended: the former control may not have come to closing it.
    if (adopting_ && !holding.fetched) {
      phase_.change(FilesPhase::kFetching);
      return pending_.ask(FetchObject{at_}, out);
    }
    if (holding.done || holding.has_file) continue;
    phase_.change(FilesPhase::kReopening);
    return pending_.ask(ReopenFile{at_}, out);
  }
  for (uint32_t i = 0; i < holdings_.size(); ++i) {
    const ObjectId object(i);
    if (!turn(object) || !holdings_[object].to_open()) continue;
    if (catalog_.object(object).size_bytes == 0) continue;
    phase_.change(FilesPhase::kOpening);
    return open(object, out);
  }
  phase_.change(FilesPhase::kReady);
}

Status DestinationFiles::on(const FilesCreated& event, Effects& out) {
  pending_.answered();
  if (!event.files) return event.files.error();
  created(*event.files, out);
  return {};
}

void DestinationFiles::created(const std::vector<catalog::File>& files, Effects& out) {
  for (const catalog::File& file : files) {
    catalog_.add(file);
    const bool found = file.state == catalog::FileState::kDone;  // a part that was here already
    holdings_.push_back({.has_file = !discard_ && !file.failed() && !found, .done = file.failed() || found});
  }
  if (growth_ == GrowthPhase::kNone) walk(out);
}

// ---- more of them, while data moves --------------------------------------------------------------

bool DestinationFiles::grow(Effects& out) {
  std::vector<catalog::File> files = new_files();
  if (files.empty()) {
    if (!offer_.growing && catalog_.growing()) return end_list(), true;
    return false;
  }
  growth_.change(GrowthPhase::kCreating);
  create(std::move(files), out);
  return true;
}

// An object before them may still be open, since nothing waited for its number.
void DestinationFiles::open_grown(ObjectId first, Effects& out) {
  growth_.change(GrowthPhase::kOpening);
  for (ObjectId object = first; object < holdings_.end_id(); ++object) {
    const Holding& holding = holdings_[object];
    const bool wanted = holding.to_open() && !holding.opening && catalog_.object(object).size_bytes != 0;
    if (wanted && turn(object)) open(object, out);
    // Also where this one is not to be opened: nothing else would close the one before it.
    if (object.value() < window()) continue;
    const ObjectId before(object.value() - window());
    const bool closing = catalog_.packed(before) || catalog_.files_of(before).front().failed();
    if (holdings_[before].done && holdings_[before].open && !closing) close(before, out);
  }
}

bool DestinationFiles::grown() const {
  if (growth_ != GrowthPhase::kOpening) return false;
  for (ObjectId object(first_offered()); object < holdings_.end_id(); ++object) {
    const Holding& holding = holdings_[object];
    if (turn(object) && holding.to_open() && catalog_.object(object).size_bytes != 0) return false;
  }
  return true;
}

Status DestinationFiles::on(const ObjectFetched& event, Effects& out) {
  pending_.answered();
  holdings_[event.object].open = event.found;
  holdings_[event.object].fetched = true;
  walk(out);
  return {};
}

Status DestinationFiles::on(const FileReopened& event, Effects& out) {
  pending_.answered();
  if (!event.found) return event.found.error();
  holdings_[event.object].has_file = *event.found;
  if (halted_) return {};
  if (*event.found) {
    walk(out);
    return {};
  }
  // The dataplane would go on writing to a file without a name.
  if (adopting_ && holdings_[event.object].open)
    return Error{ErrorCode::kStalled,
                 catalog_.shown(event.object) + ": its unfinished file is gone: opening new flows"};
  out.log(LogLevel::kWarn,
          fmt::format("{}: its unfinished file is gone; it begins anew", catalog_.shown(event.object)));
  phase_.change(FilesPhase::kRecreating);
  pending_.ask(RecreateFile{event.object}, out);
  return {};
}

Batch DestinationFiles::rows_anew(ObjectId object) const {
  Batch batch;
  batch.restart.push_back(object);
  const catalog::FileId first = catalog_.object(object).first_file;
  batch.files.push_back({.file = first, .record = catalog_.file(first)});
  return batch;
}

Status DestinationFiles::on(const FileRecreated& event, std::vector<recovery::Block> rows, Effects& out) {
  pending_.answered();
  catalog::File& file = catalog_.files_of(event.object).front();
  if (event.identity) {
    holdings_[event.object].has_file = true;
    // Some names of a pack may have been given already: that is not forgotten.
    if (!file.packed()) file.state = catalog::FileState::kOpen;
    file.identity = *event.identity;
  } else if (event.identity.error().code == ErrorCode::kDestinationExists && catalog_.may_fail_in_part()) {
    out.log(LogLevel::kWarn, event.identity.error().message + "; all else goes on");
    file.note_failed({}, failure_at_destination(event.identity.error().code, event.failure));
    mark_failed(event.object);
  } else {
    return event.identity.error();
  }
  Batch batch = rows_anew(event.object);
  if (!rows.empty()) batch.blocks.push_back({.object = event.object, .blocks = std::move(rows)});
  if (!halted_) phase_.change(FilesPhase::kNoting);
  // Also when the attempt is over: what the journal says of the file that is gone is worth nothing.
  pending_.ask(WriteJournal{.entry = Entry::kAnew,
                            .object = event.object,
                            .batch = std::move(batch),
                            .durability = Durability::kPower},
               out);
  return {};
}

Status DestinationFiles::on(const JournalWritten& event, Effects& out) {
  pending_.answered();
  if (!event.status) return event.status;
  walk(out);
  return {};
}

// ---- the end -----------------------------------------------------------------------------------

void DestinationFiles::attempt_over() {
  pending_.check_none();
  phase_.change(FilesPhase::kIdle);
  growth_.change(GrowthPhase::kNone);
  offering_ = false;
  for (Holding& holding : holdings_) holding.open = holding.opening = holding.whole = holding.fetched = false;
}

void DestinationFiles::released() {
  for (Holding& holding : holdings_) holding.has_file = false;
}

}  // namespace sluice::transfer
