// Files of a source, and what both roles have. Those of a destination are in received_files.cc and
// commit_files.cc.
// SPDX-License-Identifier: Apache-2.0
#include "control/runtime/transfer_files.h"

#include <algorithm>
#include <iterator>

#include "control/exports/read_back.h"
#include "control/runtime/export_key.h"
#include "dataplane/base/check.h"
#include "dataplane/base/generated.h"
#include "dataplane/crc/crc.h"

namespace sluice::runtime {
namespace {

// Of an extent that the dataplane generates.
uint64_t crc_of_generated(wire::CrcKind kind, uint64_t length) {
  std::vector<uint8_t> extent(length);
  fill_generated(extent);
  return crc::compute(kind, 0, extent.data(), extent.size());
}

exports::Exports exports_for(const transfer::Transfer& transfer, const Services& services) {
  const transfer::Job& job = transfer.job();
  // The rights of whoever ordered it, not of who moves it.
  if (job.granted) return services.exports_for(job.granted->issuer, {}, {});
  if (job.mapped) return services.exports_for(transfer.peer(), job.mapped->user, {});
  if (!job.request) return services.exports_for(transfer.peer(), {}, {});
  exports::Exports open = services.exports_for(transfer.peer(), job.request->user, job.request->local_files);
  return job.initiator && !open.of_user() ? open.for_operator() : open;
}

}  // namespace

TransferFiles::TransferFiles(std::shared_ptr<Services> services, std::weak_ptr<EventQueue> queue,
                             const transfer::Transfer& transfer, gather::OpenSources sources)
    : services_(std::move(services)),
      queue_(std::move(queue)),
      transfer_(transfer),
      exports_(std::make_shared<exports::Exports>(exports_for(transfer, *services_))),
      list_(std::move(sources.rest)),
      sources_(std::move(sources.open)) {}

void TransferFiles::post(transfer::Event event) const { post_to(queue_, std::move(event)); }

const catalog::File& TransferFiles::file(ObjectId object) const {
  const catalog::Catalog* const catalog = transfer_.job().catalog();
  DCHECK(catalog != nullptr && object.value() < catalog->object_count(),
         "files are named when they are in the catalog");
  return catalog->files_of(object).front();
}

const std::shared_ptr<exports::SourceFile>& TransferFiles::source(ObjectId object) const {
  DCHECK(object.value() < sources_.size(), "a source's files are used after they were opened");
  return sources_[object.value()];
}

TransferFiles::Descriptor TransferFiles::descriptor(ObjectId object) const {
  if (const auto pack = packs_.find(object); pack != packs_.end())
    return {.fd = pack->second.memory->fd(), .direct = false, .owner = pack->second.memory};
  const size_t i = object.value();
  if (i < sources_.size() && sources_[i])
    return {.fd = sources_[i]->fd.get(),
            .direct = sources_[i]->direct,
            .owner = sources_[i],
            .base_bytes = file(object).base_bytes()};
  if (i < destinations_.size() && destinations_[i])
    return {.fd = destinations_[i]->fd(),
            .direct = destinations_[i]->direct(),
            .owner = destinations_[i],
            .base_bytes = file(object).base_bytes()};
  return {};
}

const std::string& TransferFiles::key() {
  if (!key_.empty()) return key_;
  std::vector<std::string> paths;
  if (transfer_.job().catalog() != nullptr) {
    for (const catalog::File& file : transfer_.job().catalog()->files()) paths.push_back(file.path);
  }
  return key_ = export_key(*exports_, paths);
}

bool TransferFiles::is_closed_source(ObjectId object) const {
  const catalog::File& known = file(object);
  return !is_destination() && !known.packed() && !known.path.empty() && !source(object);
}

// One that is not what it was, or is gone, is no reason to end a session of many: the next attempt looks at
// all of them (ReopenSources), and leaves out this one alone.
void TransferFiles::open_source_again(ObjectId object, std::function<void(Status)> then) {
  files_part().run(
      [exports = exports_, known = file(object)] { return gather::reopen_source(*exports, known); },
      [self = shared_from_this(), object,
       then = std::move(then)](Result<std::shared_ptr<exports::SourceFile>> opened) {
        if (!opened) return then(Error{ErrorCode::kResources, opened.error().message});
        DCHECK(object.value() < self->sources_.size(), "files stay while one is opened");
        self->sources_[object.value()] = std::move(*opened);
        then({});
      });
}

// ---- a source ----------------------------------------------------------------------------------

void TransferFiles::perform(const transfer::OpenSources& effect) {
  if (const Status status = admit(effect.paths, {}); !status)
    return post(transfer::SourcesOpened{.files = status.error(), .of_leg = effect.of_leg});
  key_ = export_key(*exports_, effect.paths);
  list_ = std::make_shared<ListReader>(services_->io, lists_part(),
                                       ListReader::What{.exports = exports_,
                                                        .paths = effect.paths,
                                                        .selection = effect.selection,
                                                        .known = {},
                                                        .kept_open = services_->kept_open,
                                                        .expected = expected()});
  list_->next(
      [weak = weak_from_this(), paths = effect.paths, of_leg = effect.of_leg](Result<ListReader::Part> part) {
        const auto self = weak.lock();
        if (!self) return;
        part = self->admitted(paths, std::move(part));
        if (!part || part->ended) self->list_.reset();
        if (!part) return self->post(transfer::SourcesOpened{.files = part.error(), .of_leg = of_leg});
        DCHECK(part->found.open.size() == part->found.files.size(), "each file that was found has its place");
        DCHECK(part->ended || !part->found.files.empty(), "a list that goes on has found something");
        self->sources_ = std::move(part->found.open);
        if (!part->ended) part->found.files.back().list = catalog::ListState::kGrowing;
        self->post(transfer::SourcesOpened{.files = std::move(part->found.files), .of_leg = of_leg});
      });
}

void TransferFiles::perform(const transfer::ReadList& effect) {
  const auto& known = transfer_.job().catalog()->files();
  if (!list_) {
    key_ = export_key(*exports_, effect.paths);
    list_ = std::make_shared<ListReader>(
        services_->io, lists_part(),
        ListReader::What{.exports = exports_,
                         .paths = effect.paths,
                         .selection = effect.selection,
                         .known = {known.begin(), known.end()},
                         .kept_open = services_->kept_open - std::min(services_->kept_open, known.size()),
                         .expected = expected()});
  }
  DCHECK(list_, "there is a list to go on with");
  list_->next([weak = weak_from_this(), tag = effect.tag,
               paths = effect.paths](Result<ListReader::Part> part) {
    const auto self = weak.lock();
    if (!self) return;
    part = self->admitted(paths, std::move(part));
    if (!part || part->ended) self->list_.reset();
    if (!part) return self->post(transfer::ListRead{.tag = tag, .files = part.error()});
    DCHECK(part->found.open.size() == part->found.files.size(), "each file that was found has its place");
    // Behind those that the catalog has, where they will stand in it as well.
    self->sources_.resize(self->transfer_.job().catalog()->file_count());
    std::move(part->found.open.begin(), part->found.open.end(), std::back_inserter(self->sources_));
    self->post(transfer::ListRead{.tag = tag, .files = std::move(part->found.files), .ended = part->ended});
  });
}

void TransferFiles::perform(const transfer::ReopenSources&) {
  gather::OpenSources known;
  const auto& files = transfer_.job().catalog()->files();
  known.files.assign(files.begin(), files.end());
  sources_.resize(std::max(sources_.size(), files.size()));
  known.open.assign(sources_.begin(), sources_.begin() + static_cast<ptrdiff_t>(files.size()));
  files_part().run(
      [exports = exports_, known = std::move(known), kept_open = services_->kept_open] {
        return gather::reopen_sources(*exports, known, kept_open);
      },
      [self = shared_from_this()](gather::ReopenedSources reopened) {
        DCHECK(reopened.failed.size() <= reopened.open.size(), "no more fail than there are");
        self->sources_.resize(std::max(self->sources_.size(), reopened.open.size()));
        std::move(reopened.open.begin(), reopened.open.end(), self->sources_.begin());
        self->post(transfer::SourcesReopened{std::move(reopened.failed)});
      });
}

void TransferFiles::perform(const transfer::CheckSource& effect) {
  if (file(effect.object).packed()) return check_pack(effect);
  const std::shared_ptr<exports::SourceFile> source = this->source(effect.object);
  files_part().run(
      [source, exports = exports_, known = file(effect.object)]() -> Result<int64_t> {
        if (source) return exports::Exports::check_unchanged(*source);
        if (known.path.empty()) return 0;  // it is generated
        const Result<std::shared_ptr<exports::SourceFile>> again = gather::reopen_source(*exports, known);
        if (!again) return again.error();
        return (*again)->ctime_ns;
      },
      [self = shared_from_this(), effect](Result<int64_t> ctime_ns) {
        transfer::SourceChecked checked{.object = effect.object, .status = {}, .otherwise = effect.otherwise};
        if (ctime_ns) {
          checked.ctime_ns = *ctime_ns;
        } else {
          checked.status = ctime_ns.error();
        }
        self->post(std::move(checked));
      });
}

void TransferFiles::perform(const transfer::ReadExtents& effect) {
  if (file(effect.object).packed()) return read_extents(effect);
  const std::shared_ptr<exports::SourceFile> source = this->source(effect.object);
  const wire::CrcKind kind = transfer_.job().terms->crc_kind;
  files_part().run(
      [source, kind, ranges = effect.ranges, exports = exports_,
       known = file(effect.object)]() -> Result<std::vector<uint64_t>> {
        std::shared_ptr<exports::SourceFile> open = source;
        if (!open && !known.path.empty()) {
          Result<std::shared_ptr<exports::SourceFile>> again = gather::reopen_source(*exports, known);
          if (!again) return again.error();
          open = std::move(*again);
        }
        return crcs_of(ranges, [&](const recovery::Range& range) -> Result<uint64_t> {
          if (!open) return crc_of_generated(kind, range.length);
          return exports::read_crc(open->fd.get(), kind, known.base_bytes() + range.offset, range.length);
        });
      },
      [self = shared_from_this(), effect](Result<std::vector<uint64_t>> crcs) {
        self->post(
            transfer::ExtentsRead{.object = effect.object, .first = effect.first, .crcs = std::move(crcs)});
      });
}

}  // namespace sluice::runtime
