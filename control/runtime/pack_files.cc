// Packs among the files of a transfer: filled, found again, unpacked, on the pool.
// SPDX-License-Identifier: Apache-2.0
#include "control/catalog/asked_names.h"
#include "control/runtime/transfer_files.h"
#include "dataplane/base/check.h"
#include "dataplane/crc/crc.h"

namespace sluice::runtime {
namespace {

using Memory = std::shared_ptr<gather::PackMemory>;

Error not_in_memory() { return {ErrorCode::kStorage, "the pack is not in memory any more"}; }

}  // namespace

void TransferFiles::make_ready(ObjectId object, std::function<void(Status)> then) {
  if (is_closed_source(object)) return open_source_again(object, std::move(then));
  if (is_closed_destination(object)) return open_destination_again(object, std::move(then));
  const catalog::File& pack = file(object);
  if (!pack.packed() || packs_.contains(object) || (transfer_.job().terms->discard && is_destination()))
    return then({});
  auto keep = [self = shared_from_this(), object, then = std::move(then)](Result<Memory> memory) {
    if (!memory) return then(memory.error());
    self->packs_[object] = {.memory = std::move(*memory), .unpacker = nullptr};
    then({});
  };
  // Empty memory needs no thread. In the pool's queue it would wait for other packs to be unpacked, and what
  // comes meanwhile would be of an object that nobody knows.
  if (is_destination()) return keep(gather::PackMemory::make(pack.size_bytes));
  packs_part().run([exports = exports_, pack] { return gather::fill_pack(*exports, pack); }, std::move(keep));
}

void TransferFiles::closed(ObjectId object) {
  if (is_destination()) return;
  packs_.erase(object);
  if (object.value() < services_->kept_open || object.value() >= sources_.size()) return;
  files_part().run(
      [source = std::exchange(sources_[object.value()], nullptr)]() mutable {
        source.reset();
        return 0;
      },
      [](int) {});
}

Result<uint64_t> TransferFiles::crc_of_pack(ObjectId object, recovery::Range range) const {
  const auto pack = packs_.find(object);
  if (pack == packs_.end() || range.end() > pack->second.memory->bytes().size()) return not_in_memory();
  return crc::compute(transfer_.job().terms->crc_kind, 0, pack->second.memory->bytes().data() + range.offset,
                      range.length);
}

// Sums extents of a pack that the journal does not know. The pack is in memory, filled again if need be.
void TransferFiles::read_extents(const transfer::ReadExtents& effect) {
  make_ready(effect.object, [self = shared_from_this(), effect](const Status& status) {
    const auto crc = [&](const recovery::Range& range) -> Result<uint64_t> {
      if (!status) return status.error();
      return self->crc_of_pack(effect.object, range);
    };
    self->post(transfer::ExtentsRead{
        .object = effect.object, .first = effect.first, .crcs = crcs_of(effect.ranges, crc)});
  });
}

// The bytes that were sent are in memory: nothing but `otherwise` can be wrong with them.
void TransferFiles::check_pack(const transfer::CheckSource& effect) {
  transfer::SourceChecked checked{.object = effect.object, .status = {}, .otherwise = effect.otherwise};
  if (!effect.otherwise) return post(std::move(checked));
  packs_part().run(
      [exports = exports_, pack = file(effect.object)] { return gather::names_of_changed(*exports, pack); },
      [self = shared_from_this(),
       checked = std::move(checked)](std::vector<catalog::FailedName> names) mutable {
        checked.names = std::move(names);
        self->post(std::move(checked));
      });
}

void TransferFiles::read_back_pack(const transfer::ReadBackObject& effect) {
  post(transfer::ObjectReadBack{
      .object = effect.object, .range = effect.range, .crc = crc_of_pack(effect.object, effect.range)});
}

void TransferFiles::adopt_pack(ObjectId object, UniqueFd fd) {
  Result<Memory> memory = gather::PackMemory::adopt(std::move(fd), file(object).size_bytes);
  if (memory) packs_[object] = {.memory = std::move(*memory), .unpacker = nullptr};
}

// Nothing: whatever comes was not asked for from here.
Result<std::shared_ptr<const catalog::AskedNames>> TransferFiles::asked_names() {
  const transfer::Job& job = transfer_.job();
  if (asked_ || !job.initiator || !job.request) return asked_;
  Result<selection::Choice> choice = selection::Choice::make(job.request->selection);
  if (!choice) return choice.error();
  asked_ = std::make_shared<const catalog::AskedNames>(job.request->source_paths, std::move(*choice));
  return asked_;
}

std::shared_ptr<const digests::Expected> TransferFiles::expected() const {
  const transfer::Job& job = transfer_.job();
  return job.initiator && job.request ? job.request->expected : nullptr;
}

void TransferFiles::finish_pack(ObjectId object) {
  if (!packs_.contains(object))
    return post(transfer::ObjectFinished{.object = object, .status = not_in_memory()});
  Result<std::shared_ptr<const catalog::AskedNames>> asked = asked_names();
  if (!asked) return post(transfer::ObjectFinished{.object = object, .status = asked.error()});
  packs_part().run(
      [exports = exports_, pack = file(object), memory = packs_[object].memory,
       staging = gather::staging_name(transfer_.id(), object), asked = std::move(*asked),
       expected = expected()] {
        return gather::stage_pack(*exports, pack, *memory, staging, asked.get(), expected);
      },
      [self = shared_from_this(), object](Result<std::shared_ptr<exports::Unpacking>> staged) {
        transfer::ObjectFinished finished{.object = object, .status = {}};
        if (staged) {
          DCHECK(self->packs_.contains(object), "a pack stays in memory until it has its names");
          self->packs_[object].unpacker = std::move(*staged);
        } else {
          finished.status = staged.error();
        }
        self->post(std::move(finished));
      });
}

void TransferFiles::name_pack(ObjectId object) {
  const auto pack = packs_.find(object);
  if (pack == packs_.end() || !pack->second.unpacker)
    return post(
        transfer::ObjectNamed{.object = object, .status = not_in_memory(), .given = false, .missing = {}});
  const std::shared_ptr<exports::Unpacking> unpacker = pack->second.unpacker;
  packs_part().run([unpacker] { return unpacker->commit(); },
                   [self = shared_from_this(), object, unpacker](Status status) {
                     transfer::ObjectNamed named{
                         .object = object, .status = std::move(status), .given = true, .missing = {}};
                     if (named.status) {
                       named.missing = unpacker->missing();
                       named.digests = unpacker->digests();
                       self->packs_.erase(object);
                     }
                     self->post(std::move(named));
                   });
}

}  // namespace sluice::runtime
