// SPDX-License-Identifier: Apache-2.0
#include "control/transfer/destination_files.h"

#include <fmt/format.h>

#include <set>

#include "dataplane/board/attach.h"

namespace sluice::transfer {
namespace {

constexpr uint64_t kBytesTotalMax = 1ULL << 62;

bool good_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

// The name under which an honest source offers what a path leads to.
std::string_view last_name(std::string_view path) {
  while (true) {
    const std::string_view name = path.substr(path.rfind('/') + 1);
    if ((!name.empty() && name != ".") || name.size() == path.size()) return name;
    path.remove_suffix(name.size() + 1);
  }
}

bool answers(const OfferedFile& file, std::string_view path) {
  if (path.starts_with(kMemoryPrefix)) return file.name == fmt::format("memory-{}", file.size_bytes);
  return file.name == last_name(path);
}

catalog::File file_of(const OfferedFile& offered, const TransferOffer& offer) {
  return {.name = offered.name,
          .shown = std::string(kNullDestination),
          .size_bytes = offered.size_bytes,
          .mode = offered.mode,
          .mtime_ns = offered.mtime_ns,
          .overwrite = offer.overwrite,
          .verify = offer.verify};
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
      return to == P::kOpening || to == P::kReady;
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

DestinationFiles::DestinationFiles(const Settings& settings, bool discard,
                                   const std::vector<catalog::File>& files)
    : settings_(settings), discard_(discard) {
  for (const catalog::File& file : files) {
    catalog_.add(file);
    places_.push_back({});
  }
}

// ---- the offer ---------------------------------------------------------------------------------

Result<bool> DestinationFiles::take_offer(const TransferOffer& part, const Wish* wish,
                                          uint32_t extent_bytes) {
  extent_bytes_ = extent_bytes;
  if (phase_ == FilesPhase::kIdle) {
    offer_ = {.destination = part.destination,
              .into_directory = part.into_directory,
              .overwrite = part.overwrite,
              .verify = part.verify};
    phase_.change(FilesPhase::kOffer);
  }
  if (part.more && part.files.empty()) {
    return Error{ErrorCode::kIncompatible, "the peer sends a part of an offer without a file"};
  }
  if (offer_.files.size() + part.files.size() > catalog::kFilesMax) {
    return Error{ErrorCode::kIncompatible,
                 fmt::format("the peer offers more than {} files", catalog::kFilesMax)};
  }
  offer_.files.insert(offer_.files.end(), part.files.begin(), part.files.end());
  if (part.more) return false;
  if (wish != nullptr) {  // what the operator here asked for, not what the peer says
    offer_.destination = wish->destination;
    offer_.into_directory = wish->into_directory;
    offer_.overwrite = wish->overwrite;
    offer_.verify = wish->verify;
    if (Status status = check_asked_for(wish->paths); !status) return status.error();
  }
  if (Status status = check(offer_, extent_bytes); !status) return status.error();
  if (agreed()) {
    if (Status status = check_same(); !status) return status.error();
  }
  return true;
}

Status DestinationFiles::check(const TransferOffer& offer, uint32_t extent_bytes) const {
  const auto bad = [](std::string what) { return Error{ErrorCode::kIncompatible, std::move(what)}; };
  if (offer.files.empty()) return bad("the peer offers no file");
  if (offer.destination.empty()) return Error{ErrorCode::kUsage, "no destination given"};
  if (offer.files.size() > 1 && !offer.into_directory) {
    return Error{ErrorCode::kUsage, fmt::format("{}: several files need a directory", offer.destination)};
  }
  uint64_t total = 0;
  std::set<std::string_view> names;
  for (size_t i = 0; i < offer.files.size(); ++i) {
    const OfferedFile& file = offer.files[i];
    if (file.number != i || file.size_bytes > catalog::kFileBytesMax ||
        (total += file.size_bytes) > kBytesTotalMax) {
      return bad(fmt::format("the peer's offer of file {} is wrong", i));
    }
    if (!good_name(file.name)) {
      return bad(fmt::format("the peer offers a file with the name \"{}\"", file.name));
    }
    if (!names.insert(file.name).second && !discard_) {
      return bad(fmt::format("the peer offers two files with the name \"{}\"", file.name));
    }
  }
  if (total / extent_bytes > kExtentsMax) {
    return Error{
        ErrorCode::kResources,
        fmt::format("{} bytes in extents of {} are too many for one session: raise dataplane.extent_bytes",
                    total, extent_bytes)};
  }
  return {};
}

// The peer chooses neither how many files are stored here nor what they are called.
Status DestinationFiles::check_asked_for(const std::vector<std::string>& paths) const {
  if (offer_.files.size() != paths.size()) {
    return Error{ErrorCode::kIncompatible,
                 fmt::format("the peer offers {} files where {} were asked for: nothing is stored",
                             offer_.files.size(), paths.size())};
  }
  for (size_t i = 0; i < paths.size(); ++i) {
    if (answers(offer_.files[i], paths[i])) continue;
    return Error{
        ErrorCode::kIncompatible,
        fmt::format("the peer offers a file of another name where {} was asked for: nothing is stored",
                    paths[i])};
  }
  return {};
}

Status DestinationFiles::check_same() const {
  bool same = offer_.files.size() == catalog_.file_count();
  for (uint32_t i = 0; same && i < offer_.files.size(); ++i) {
    const OfferedFile& offered = offer_.files[i];
    const catalog::File& known = catalog_.file(catalog::FileId(i));
    same = offered.name == known.name && offered.size_bytes == known.size_bytes &&
           (offered.mtime_ns == known.mtime_ns || discard_);
  }
  if (same) return {};
  return Error{ErrorCode::kIntegrity,
               "the peer offers other files than this session began with: nothing was stored, begin another"};
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
    places_[object].held = event.objects[object] == Recovered::kHeld;
  }
  phase_.change(FilesPhase::kIdle);
  return {};
}

void DestinationFiles::prepare(Effects& out) {
  halted_ = adopting_ = false;
  at_ = ObjectId(0);
  if (agreed()) return walk(out);
  std::vector<catalog::File> files;
  for (const OfferedFile& offered : offer_.files) files.push_back(file_of(offered, offer_));
  phase_.change(FilesPhase::kCreating);
  if (discard_) return created(files, out);
  pending_.ask(CreateFiles{.destination = offer_.destination,
                           .into_directory = offer_.into_directory,
                           .files = std::move(files)},
               out);
}

void DestinationFiles::adopt(Effects& out) {
  halted_ = false;
  adopting_ = true;
  at_ = ObjectId(0);
  // A discarded object has no descriptor by which it could be asked for: it was opened, if it had its turn.
  for (uint32_t i = 0; discard_ && i < places_.size(); ++i) {
    const ObjectId object(i);
    places_[object].open = i < settings_.open_objects_max && catalog_.object(object).size_bytes != 0;
  }
  walk(out);
}

// Goes on with the next file that lacks something; ready when none does.
void DestinationFiles::walk(Effects& out) {
  if (halted_) return;
  for (; at_ < places_.end_id(); ++at_) {
    const Place& place = places_[at_];
    if (discard_ || place.done) continue;
    if (adopting_ && !place.fetched) {
      phase_.change(FilesPhase::kFetching);
      return pending_.ask(FetchObject{at_}, out);
    }
    if (place.held) continue;
    phase_.change(FilesPhase::kReopening);
    return pending_.ask(ReopenFile{at_}, out);
  }
  for (uint32_t i = 0; i < places_.size(); ++i) {
    const ObjectId object(i);
    if (!turn(object) || places_[object].done || places_[object].open) continue;
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
    places_.push_back({.held = !discard_});
  }
  walk(out);
}

Status DestinationFiles::on(const ObjectFetched& event, Effects& out) {
  pending_.answered();
  places_[event.object].open = event.found;
  places_[event.object].fetched = true;
  walk(out);
  return {};
}

Status DestinationFiles::on(const FileReopened& event, Effects& out) {
  pending_.answered();
  if (!event.found) return event.found.error();
  places_[event.object].held = *event.found;
  if (halted_) return {};
  if (*event.found) {
    walk(out);
    return {};
  }
  out.log(LogLevel::kWarn,
          fmt::format("{}: its unfinished file is gone; it begins anew", catalog_.shown(event.object)));
  phase_.change(FilesPhase::kRecreating);
  pending_.ask(RecreateFile{event.object}, out);
  return {};
}

Status DestinationFiles::on(const FileRecreated& event, Effects& out) {
  pending_.answered();
  if (!event.identity) return event.identity.error();
  places_[event.object].held = true;
  Batch batch;
  batch.restart.push_back(event.object);
  const catalog::FileId first = catalog_.object(event.object).first_file;
  catalog::File& file = catalog_.file(first);
  file.state = catalog::FileState::kOpen;
  file.identity = *event.identity;
  batch.files.push_back({.file = first, .record = file});
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

// ---- objects at the dataplane ------------------------------------------------------------------

bool DestinationFiles::turn(ObjectId object) const {
  const uint32_t ahead = settings_.open_objects_max;
  return object.value() < ahead || places_[ObjectId(object.value() - ahead)].done;
}

void DestinationFiles::open(ObjectId object, Effects& out) {
  places_[object].opening = true;
  pending_.ask(OpenObject{.object = object,
                          .flags = board::kObjectWrite | (discard_ ? board::kObjectDiscard : 0U),
                          .size_bytes = catalog_.object(object).size_bytes,
                          .extent_bytes = extent_bytes_},
               out);
}

Status DestinationFiles::on(const ObjectOpened& event, Effects& out) {
  pending_.answered();
  places_[event.object].opening = false;
  if (!event.status) return event.status;
  places_[event.object].open = true;
  if (phase_ == FilesPhase::kOpening) walk(out);
  return {};
}

void DestinationFiles::mark_done(ObjectId object) {
  places_[object].done = true;
  places_[object].held = false;
  for (catalog::File& file : catalog_.files_of(object)) file.state = catalog::FileState::kDone;
}

void DestinationFiles::done(ObjectId object, Effects& out) {
  mark_done(object);
  const ObjectId next = object.plus(settings_.open_objects_max);
  if (halted_ || phase_ != FilesPhase::kReady || !places_.contains(next)) return;
  if (places_[object].open) return pending_.ask(CloseObject{object}, out);
  open_in_place_of(object, out);
}

void DestinationFiles::on(const ObjectClosed& event, Effects& out) {
  pending_.answered();
  places_[event.object].open = false;
  open_in_place_of(event.object, out);
}

void DestinationFiles::open_in_place_of(ObjectId object, Effects& out) {
  const ObjectId next = object.plus(settings_.open_objects_max);
  if (halted_ || places_[next].done || places_[next].open || places_[next].opening) return;
  if (catalog_.object(next).size_bytes == 0) return;
  open(next, out);
}

// ---- the end -----------------------------------------------------------------------------------

void DestinationFiles::attempt_over() {
  pending_.check_none();
  phase_.change(FilesPhase::kIdle);
  for (Place& place : places_) place.open = place.opening = place.fetched = false;
}

void DestinationFiles::released() {
  for (Place& place : places_) place.held = false;
}

}  // namespace sluice::transfer
