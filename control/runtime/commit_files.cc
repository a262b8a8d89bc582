// The files of a destination on their way to their names: synced, read back, finished, named, dropped.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <chrono>
#include <optional>
#include <utility>

#include "control/exports/read_back.h"
#include "control/runtime/transfer_files.h"
#include "dataplane/base/check.h"
#include "dataplane/base/log.h"

namespace sluice::runtime {

// Discarded objects and packs have no file. Anything else may not count as stored or named unless it is open
// here.
Status TransferFiles::without_file(ObjectId object) const {
  if (transfer_.job().terms->discard || file(object).packed()) return {};
  return Error{ErrorCode::kInternal,
               fmt::format("{}: the file is not open, so nothing of it was stored or named: keep the log of "
                           "sluice-control, and report this",
                           file(object).shown)};
}

bool TransferFiles::is_closed_destination(ObjectId object) const { return closed_.contains(object); }

void TransferFiles::open_destination_again(ObjectId object, std::function<void(Status)> then) {
  files_part().run(
      [exports = exports_, known = file(object), many = transfer_.job().catalog()->may_fail_in_part(),
       kind = transfer_.job().terms->crc_kind]() -> Result<Destination> {
        Result<std::optional<exports::DestinationFile>> found =
            exports->reopen_destination(spec_of(known, many, kind), known.identity, UniqueFd());
        if (!found) return found.error();
        if (!found->has_value())
          return Error{ErrorCode::kStorage, known.shown +
                                                ": its unfinished file is gone, or is another one; see "
                                                "who removed it"};
        return std::make_shared<exports::DestinationFile>(std::move(**found));
      },
      [self = shared_from_this(), object, then = std::move(then)](Result<Destination> found) {
        if (!found) return then(found.error());
        DCHECK(*found && !self->destination(object), "a file is opened once");
        self->destination(object) = std::move(*found);
        self->closed_.erase(object);
        then({});
      });
}

template <typename Answer>
void TransferFiles::run_on_file(ObjectId object, std::function<Status(exports::DestinationFile&)> work) {
  if (is_closed_destination(object))
    return open_destination_again(
        object, [self = shared_from_this(), object, work = std::move(work)](Status status) mutable {
          if (status) return self->run_on_file<Answer>(object, std::move(work));
          self->post(Answer{.object = object, .status = std::move(status)});
        });
  const Destination open = destination(object);
  files_part().run(
      [open, without = without_file(object), work = std::move(work)] { return open ? work(*open) : without; },
      [self = shared_from_this(), object](Status status) {
        self->post(Answer{.object = object, .status = std::move(status)});
      });
}

void TransferFiles::perform(const transfer::SyncObject& effect) {
  run_on_file<transfer::ObjectSynced>(effect.object,
                                      [](exports::DestinationFile& file) { return file.sync(); });
}

void TransferFiles::perform(const transfer::FinishObject& effect) {
  if (file(effect.object).packed()) return finish_pack(effect.object);
  run_on_file<transfer::ObjectFinished>(effect.object,
                                        [](exports::DestinationFile& file) { return file.finish(); });
}

void TransferFiles::perform(const transfer::NameObject& effect) {
  if (file(effect.object).packed()) return name_pack(effect.object);
  if (is_closed_destination(effect.object))
    return open_destination_again(effect.object, [self = shared_from_this(), effect](Status status) {
      if (status) return self->perform(effect);
      self->post(transfer::ObjectNamed{.object = effect.object, .status = std::move(status), .given = false});
    });
  Destination open = destination(effect.object);
  files_part().run(
      [open, file = file(effect.object), without = without_file(effect.object), object = effect.object] {
        transfer::ObjectNamed named{.object = object, .status = without, .missing = {}};
        if (open && selection::is_part(file.part)) {
          const Result<std::optional<uint64_t>> done = open->commit_part(file.digest);
          named.status = done ? Status() : Status(done.error());
          if (done) named.whole_digest = *done;
        } else if (open) {
          named.status = open->commit();
        }
        named.given = named.status || (open && open->has_name());
        if (open && named.status && !open->has_its_time()) named.missing.note(file.name, catalog::kOtherTime);
        if (open && named.given) named.identity = open->identity();
        if (open && !named.status) named.failure = open->why();
        named.away = !named.given && open && open->away();
        return named;
      },
      [self = shared_from_this()](transfer::ObjectNamed named) {
        if (named.status) self->let_go(named.object);
        self->post(std::move(named));
      });
}

void TransferFiles::perform(const transfer::DropFile& effect) {
  packs_.erase(effect.object);
  if (is_closed_destination(effect.object))
    return open_destination_again(effect.object, [self = shared_from_this(), effect](Status status) {
      self->closed_.erase(effect.object);
      if (status || status.error().code == ErrorCode::kStorage)
        return self->perform(effect);  // or it is gone
      self->post(transfer::FileDropped{.object = effect.object, .status = std::move(status)});
    });
  files_part().run(
      [file = std::exchange(destination(effect.object), nullptr)]() mutable {
        const Status status = file ? file->drop() : Status();
        file.reset();
        return status;
      },
      [self = shared_from_this(), effect](Status status) {
        self->post(transfer::FileDropped{.object = effect.object, .status = std::move(status)});
      });
}

// Closing may take its time on a file system that is far away.
void TransferFiles::let_go(ObjectId object) {
  files_part().run(
      [file = std::exchange(destination(object), nullptr)]() mutable {
        file.reset();
        return 0;
      },
      [](int) {});
}

void TransferFiles::perform(const transfer::ReadBackObject& effect) {
  if (file(effect.object).packed()) return read_back_pack(effect);
  if (is_closed_destination(effect.object))
    return open_destination_again(effect.object, [self = shared_from_this(), effect](Status status) {
      if (status) return self->perform(effect);
      self->post(
          transfer::ObjectReadBack{.object = effect.object, .range = effect.range, .crc = status.error()});
    });
  std::shared_ptr<digests::Several> several;
  if (effect.digests != 0) {
    std::shared_ptr<digests::Several>& known = digesting_[effect.object];
    if (effect.range.offset == 0) {
      Result<digests::Several> begun = digests::Several::begin(effect.digests);
      if (!begun)
        return post(
            transfer::ObjectReadBack{.object = effect.object, .range = effect.range, .crc = begun.error()});
      known = std::make_shared<digests::Several>(std::move(*begun));
    }
    DCHECK(known, "digests begin with the first byte");
    several = known;
  }
  const uint64_t size_bytes = file(effect.object).size_bytes;
  files_part().run(
      [open = destination(effect.object), kind = transfer_.job().terms->crc_kind, effect, several, size_bytes,
       file_base = file(effect.object).base_bytes()] {
        const auto began = std::chrono::steady_clock::now();
        std::optional<sums::RangeSummer> sums;
        if (effect.sums != 0) sums.emplace(effect.shape, effect.sums, effect.range);
        const exports::Also also{
            .digests = several.get(), .sums = sums ? &*sums : nullptr, .cached = effect.cached};
        const Result<exports::Part> part =
            exports::read_back_part(open->fd(), kind, file_base + effect.range.offset, effect.range.length,
                                    effect.data_bytes_most, also);
        transfer::ObjectReadBack read{.object = effect.object,
                                      .range = effect.range,
                                      .crc = Error{ErrorCode::kStorage, "was not read"}};
        if (part) {
          read.range.length = part->bytes;
          read.crc = part->crc;
          if (several && read.range.end() == size_bytes) read.digests = several->values();
          if (sums) read.sums = sums->take();
        } else {
          read.crc = part.error();
        }
        read.took_ns =
            static_cast<uint64_t>(std::chrono::nanoseconds(std::chrono::steady_clock::now() - began).count());
        return read;
      },
      [self = shared_from_this(), size_bytes](transfer::ObjectReadBack read) {
        if (!read.crc || read.range.end() == size_bytes) self->digesting_.erase(read.object);
        self->post(std::move(read));
      });
}

}  // namespace sluice::runtime
