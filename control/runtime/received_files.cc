// The files of a destination: created, and found again after a restart.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "control/exports/beneath.h"
#include "control/runtime/export_key.h"
#include "control/runtime/transfer_files.h"
#include "control/words/failures.h"
#include "dataplane/base/check.h"
#include "dataplane/base/counted.h"
#include "dataplane/base/log.h"
#include "dataplane/base/progress.h"

namespace sluice::runtime {
namespace {

using Files = std::vector<std::shared_ptr<exports::DestinationFile>>;
using transfer::Recovered;

using Closed = std::map<size_t, exports::Reservation>;

struct Created {
  Files open;
  std::vector<catalog::File> files;
  Closed closed;
};

// Closes a file that is opened again when its turn comes. What there is of it stays, and nobody else takes
// it.
void close_for_now(const exports::Exports& exports, size_t place, Files* open, Closed* closed) {
  DCHECK(place < open->size() && (*open)[place] && !closed->contains(place),
         "a file that is open is closed, once");
  exports::DestinationFile& file = *(*open)[place];
  closed->emplace(place, exports.reserve(file.identity(), file.name_path()));
  file.keep();
  (*open)[place] = nullptr;
}

Result<exports::DestinationFile> create_file(const exports::Exports& exports, const catalog::File& file,
                                             const transfer::CreateFiles& wanted, wire::CrcKind crc_kind,
                                             catalog::Failure* why) {
  exports::DestinationSpec spec = spec_of(file, wanted.in_part, crc_kind);
  spec.path = wanted.destination;
  spec.is_directory = wanted.into_directory;
  if (const size_t slash = file.name.rfind('/'); slash != std::string::npos) {
    Result<std::string> directory =
        exports.make_directories_for(wanted.destination, file.name.substr(0, slash), why);
    if (!directory) return directory.error();
    spec.path = std::move(*directory);
  }
  return exports.create_destination(spec, why);
}

// A range that was noted to be here, whoever sent it, is as good as done.
Status find_part(const exports::Exports& exports, const transfer::CreateFiles& wanted, wire::CrcKind crc_kind,
                 catalog::File* file) {
  if (!selection::is_range(file->part)) return {};
  exports::DestinationSpec spec = spec_of(*file, false, crc_kind);
  spec.path = wanted.destination;
  spec.is_directory = wanted.into_directory;
  Result<std::optional<exports::PartFound>> found = exports.find_part(spec);
  if (!found) return found.error();
  if (!found->has_value()) return {};
  file->shown = (*found)->shown;
  file->path = (*found)->path;
  file->identity = (*found)->identity;
  file->digest = (*found)->digest;
  file->state = catalog::FileState::kDone;
  return {};
}

// All files, or, in part, those that can be. Those made before an error are removed by their destructors.
// `session`: for the log.
Result<Created> create_files(const exports::Exports& exports, const transfer::CreateFiles& wanted,
                             wire::CrcKind crc_kind, const std::string& session, size_t kept_open) {
  Created created{.open = {}, .files = wanted.files, .closed = {}};
  if (wanted.mkdir) {
    const Status made =
        exports.make_missing(wanted.destination, wanted.into_directory, wanted.files.front().keep);
    if (!made) return made.error();
  }
  std::string path;  // of the directory, where they are or may be several
  const bool packed = std::any_of(created.files.begin(), created.files.end(),
                                  [](const catalog::File& file) { return file.packed(); });
  if (exports.of_user() && exports.trees_of_user() == nullptr && !packed) {
    path = wanted.destination;  // each of these files is a file of its own
  } else if (wanted.in_part || packed) {
    Result<std::string> found = exports.destination_path(wanted.destination, wanted.files.front().keep);
    if (!found) return found.error();
    path = std::move(*found);
  }
  for (catalog::File& file : created.files) {
    base::note_progress();
    created.open.push_back(nullptr);
    if (file.packed()) {
      file.path = path;
      file.shown = fmt::format("{} ({})", exports::printable(path), base::counted(file.pack.members, "name"));
      continue;
    }
    if (Status status = find_part(exports, wanted, crc_kind, &file); !status) return status.error();
    if (file.state == catalog::FileState::kDone) continue;
    catalog::Failure why = catalog::Failure::kNone;
    Result<exports::DestinationFile> one = create_file(exports, file, wanted, crc_kind, &why);
    if (!one && !(wanted.in_part && transfer::concerns_one_file(one.error().code))) return one.error();
    if (!one) {
      file.shown = exports::printable(path + "/" + file.name);
      file.note_failed({}, transfer::failure_at_destination(one.error().code, why));
      file.state = catalog::FileState::kFailed;
      log::of(log::kSession)->warn("{}: {}; all else goes on", session, one.error().message);
      continue;
    }
    file.shown = one->final_path();
    file.path = one->name_path();
    file.identity = one->identity();
    created.open.back() = std::make_shared<exports::DestinationFile>(std::move(*one));
    if (created.open.size() > kept_open)
      close_for_now(exports, created.open.size() - 1, &created.open, &created.closed);
  }
  DCHECK(created.open.size() == created.files.size(), "each file has its place");
  return created;
}

// Creates the directories of its tree too, which may be gone as well. The directory that the tree goes into
// is not made: what is to be mounted there may not be back yet.
Result<exports::DestinationFile> create_again(const exports::Exports& exports, const catalog::File& file,
                                              bool one_of_many, wire::CrcKind crc_kind,
                                              catalog::Failure* why) {
  if (const size_t slash = file.name.rfind('/');
      slash != std::string::npos && file.path.ends_with("/" + file.name)) {
    const std::string top = file.path.substr(0, file.path.size() - file.name.size());
    const auto made = exports.make_directories_for(top, file.name.substr(0, slash), why);
    if (!made) return made.error();
  }
  return exports.create_destination(spec_of(file, one_of_many, crc_kind), why);
}

struct FoundAgain {
  Recovered what = Recovered::kAway;
  std::shared_ptr<exports::DestinationFile> file;
};

// Finds an unfinished file and holds it, so that no other transfer can take it. The dataplane may still have
// it: then it is away.
FoundAgain find_again(const exports::Exports& exports, const catalog::File& file, bool one_of_many,
                      wire::CrcKind crc_kind) {
  const exports::DestinationSpec spec = spec_of(file, one_of_many, crc_kind);
  if (file.failed()) {
    // A volume that went back in time has it again.
    if (file.identity.inode == 0 || file.packed()) return {};
    if (auto found = exports.reopen_destination(spec, file.identity, UniqueFd()); found && *found)
      (void)(*found)->drop();
    return {};
  }
  // A pack was in memory, and is gone, whichever of its files have names already.
  if (file.packed())
    return {.what = file.state == catalog::FileState::kDone ? Recovered::kNamed : Recovered::kAway,
            .file = nullptr};
  // The rename may have come through before the former control could say so; and what had its name may be
  // gone.
  if (file.state != catalog::FileState::kOpen) {
    const Result<bool> named = selection::is_part(file.part) ? exports.is_part_committed(spec, file.identity)
                                                             : exports.is_committed(file.path, file.identity);
    // The journal is believed where nobody can look as the user whose file it is.
    const bool unseen = !named && named.error().code == ErrorCode::kDaemonNotRunning;
    if ((named && *named) || (unseen && file.state == catalog::FileState::kDone))
      return {.what = Recovered::kNamed, .file = nullptr};
    if (file.state == catalog::FileState::kDone) return {};
  }
  Result<std::optional<exports::DestinationFile>> reopened =
      exports.reopen_destination(spec, file.identity, UniqueFd());
  if (!reopened || !reopened->has_value()) return {};
  return {.what = Recovered::kHeld,
          .file = std::make_shared<exports::DestinationFile>(std::move(**reopened))};
}

struct RecoveredFiles {
  std::vector<Recovered> what;
  Files open;
  Closed closed;
};

}  // namespace

exports::DestinationSpec spec_of(const catalog::File& file, bool one_of_many, wire::CrcKind crc_kind) {
  return {.path = file.path,
          .is_directory = false,
          .name = exports::last_component(file.name),
          .size = file.bytes_on_disk(),
          .mode = file.mode & 07777,
          .mtime_ns = file.mtime_ns,
          .overwrite = file.overwrite,
          .one_of_many = one_of_many,
          .beneath_tree = file.keep.top || file.name.find('/') != std::string::npos,
          .holes = file.holes,
          .keep = file.keep,
          .attributes = file.attributes,
          .part = file.part,
          .verify = file.verify,
          .crc_kind = crc_kind};
}

TransferFiles::Destination& TransferFiles::destination(ObjectId object) {
  DCHECK(object.value() < transfer_.job().catalog()->object_count(), "an object is in the catalog");
  if (destinations_.size() <= object.value()) destinations_.resize(transfer_.job().catalog()->object_count());
  return destinations_[object.value()];
}

void TransferFiles::fetched(ObjectId object, UniqueFd fd) {
  const catalog::FileState state = file(object).state;
  if (state == catalog::FileState::kDone || state == catalog::FileState::kFailed)
    return;  // it is closed next
  if (file(object).packed()) return adopt_pack(object, std::move(fd));
  if (fetched_.size() <= object.value()) fetched_.resize(object.value() + 1);
  fetched_[object.value()] = std::make_shared<UniqueFd>(std::move(fd));
}

void TransferFiles::perform(const transfer::CreateFiles& effect) {
  if (const Status status = admit({effect.destination}, effect.files); !status)
    return post(transfer::FilesCreated{status.error()});
  key_ = export_key(*exports_, {effect.destination});
  const size_t before = transfer_.job().catalog() == nullptr ? 0 : transfer_.job().catalog()->object_count();
  const size_t kept_open = services_->kept_open - std::min(services_->kept_open, before);
  files_part().run(
      [exports = exports_, effect, kind = transfer_.job().terms->crc_kind, session = transfer_.log_name(),
       kept_open] { return create_files(*exports, effect, kind, session, kept_open); },
      [self = shared_from_this()](Result<Created> created) {
        if (!created) return self->post(transfer::FilesCreated{created.error()});
        DCHECK(created->open.size() == created->files.size(), "each file has its place");
        // Behind those that there are: a list may grow.
        self->destinations_.resize(self->transfer_.job().catalog()->object_count());
        for (auto& [place, reservation] : created->closed)
          self->closed_[ObjectId(static_cast<uint32_t>(self->destinations_.size() + place))] =
              std::move(reservation);
        std::move(created->open.begin(), created->open.end(), std::back_inserter(self->destinations_));
        self->post(transfer::FilesCreated{std::move(created->files)});
      });
}

void TransferFiles::perform(const transfer::RecoverFiles&) {
  const auto& files = transfer_.job().catalog()->files();
  files_part().run(
      [exports = exports_, files = std::vector<catalog::File>(files.begin(), files.end()),
       many = transfer_.job().catalog()->may_fail_in_part(), kind = transfer_.job().terms->crc_kind,
       kept_open = services_->kept_open] {
        exports->note_interrupted();
        RecoveredFiles all;
        for (const catalog::File& file : files) {
          FoundAgain found = find_again(*exports, file, many, kind);
          all.what.push_back(found.what);
          all.open.push_back(std::move(found.file));
          if (all.open.back() && all.open.size() > kept_open)
            close_for_now(*exports, all.open.size() - 1, &all.open, &all.closed);
          base::note_progress();
        }
        return all;
      },
      [self = shared_from_this()](RecoveredFiles all) {
        DCHECK(self->destinations_.empty() && self->closed_.empty(),
               "files are found again once, before all else");
        DCHECK(all.what.size() == all.open.size(), "each file was looked for");
        transfer::FilesRecovered recovered;
        for (const Recovered what : all.what) recovered.objects.push_back(what);
        self->destinations_ = std::move(all.open);
        for (auto& [place, reservation] : all.closed)
          self->closed_[ObjectId(static_cast<uint32_t>(place))] = std::move(reservation);
        self->post(std::move(recovered));
      });
}

void TransferFiles::perform(const transfer::ReopenFile& effect) {
  if (file(effect.object).packed())
    return post(transfer::FileReopened{.object = effect.object, .found = packs_.contains(effect.object)});
  std::shared_ptr<UniqueFd> fd = std::make_shared<UniqueFd>();
  if (effect.object.value() < fetched_.size() && fetched_[effect.object.value()])
    fd = std::exchange(fetched_[effect.object.value()], nullptr);
  files_part().run(
      [exports = exports_, known = file(effect.object), fd,
       many = transfer_.job().catalog()->may_fail_in_part(), kind = transfer_.job().terms->crc_kind] {
        return exports->reopen_destination(spec_of(known, many, kind), known.identity, std::move(*fd));
      },
      [self = shared_from_this(), effect](Result<std::optional<exports::DestinationFile>> reopened) {
        transfer::FileReopened answer{.object = effect.object, .found = false};
        if (!reopened) answer.found = reopened.error();
        if (reopened && reopened->has_value()) {
          DCHECK(!self->destination(effect.object), "a file is opened once");
          self->closed_.erase(effect.object);
          self->destination(effect.object) =
              std::make_shared<exports::DestinationFile>(std::move(**reopened));
          answer.found = true;
        }
        self->post(std::move(answer));
      });
}

void TransferFiles::perform(const transfer::RecreateFile& effect) {
  if (file(effect.object).packed()) {  // it is made when it is opened
    packs_.erase(effect.object);
    return post(transfer::FileRecreated{.object = effect.object, .identity = catalog::FileIdentity()});
  }
  const auto why = std::make_shared<catalog::Failure>(catalog::Failure::kNone);
  files_part().run(
      [exports = exports_, known = file(effect.object), why,
       many = transfer_.job().catalog()->may_fail_in_part(), kind = transfer_.job().terms->crc_kind] {
        return create_again(*exports, known, many, kind, why.get());
      },
      [self = shared_from_this(), effect, why](Result<exports::DestinationFile> created) {
        transfer::FileRecreated answer{
            .object = effect.object, .identity = catalog::FileIdentity(), .failure = *why};
        if (created) {
          self->closed_.erase(effect.object);
          self->destination(effect.object) = std::make_shared<exports::DestinationFile>(std::move(*created));
          answer.identity = self->destination(effect.object)->identity();
        } else {
          answer.identity = created.error();
        }
        self->post(std::move(answer));
      });
}

}  // namespace sluice::runtime
