// The receiving end's files: created, found again after a restart, given to the dataplane, kept or removed.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "control/session/destination.h"

namespace sluice::control {
namespace {

constexpr uint64_t kBytesTotalMax = 1ULL << 62;

using Files = std::vector<std::shared_ptr<exports::DestinationFile>>;

journal::FileRecord new_record(const peer::TransferOffer& offer, const peer::File& file) {
  journal::FileRecord record;
  record.set_name(file.path());
  record.set_size(file.size());
  record.set_mode(file.mode());
  record.set_mtime_ns(file.mtime_ns());
  record.set_overwrite(offer.overwrite());
  record.set_shown(std::string(kNullDestination));
  return record;
}

exports::DestinationSpec spec_of(const journal::FileRecord& record) {
  exports::DestinationSpec spec;
  spec.path = record.path();
  spec.name = record.name();
  spec.size = record.size();
  spec.mode = record.mode() & 07777;
  spec.mtime_ns = record.mtime_ns();
  spec.overwrite = record.overwrite();
  return spec;
}

// Creates all files, or none: those made before an error are removed by their destructors.
Result<Files> create_files(const exports::Exports& exports, const peer::TransferOffer& offer) {
  Files files;
  for (const peer::File& file : offer.files()) {
    exports::DestinationSpec spec = spec_of(new_record(offer, file));
    spec.path = offer.destination();
    spec.is_directory = offer.destination_is_directory();
    Result<exports::DestinationFile> created = exports.create_destination(spec);
    if (!created) return created.error();
    files.push_back(std::make_shared<exports::DestinationFile>(std::move(*created)));
  }
  return files;
}

bool finished(const journal::FileRecord& record) { return record.state() != journal::FileRecord::OPEN; }

}  // namespace

Status Destination::check_offer(const peer::TransferOffer& offer) const {
  const auto bad = [](std::string what) { return Error{ErrorCode::kIncompatible, std::move(what)}; };
  const auto count = static_cast<uint32_t>(offer.files_size());
  if (count == 0 || count > kFilesMax)
    return bad(fmt::format("the peer offers {} files: 1 to {}", count, kFilesMax));
  if (offer.destination().empty()) return Error{ErrorCode::kUsage, "no destination given"};
  if (count > 1 && !offer.destination_is_directory()) {
    return Error{ErrorCode::kUsage, fmt::format("{}: several files need a directory", offer.destination())};
  }
  uint64_t total = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const peer::File& file = offer.files(static_cast<int>(i));
    if (file.object() != i || file.size() > kFileBytesMax || (total += file.size()) > kBytesTotalMax) {
      return bad(fmt::format("the peer's offer of file {} is wrong", i));
    }
    const std::string& name = file.path();
    if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos ||
        name.find('\0') != std::string::npos) {
      return bad(fmt::format("the peer offers a file with the name \"{}\"", name));
    }
  }
  if (total / session_.agreement().extent_bytes > kExtentsMax) {
    return Error{
        ErrorCode::kResources,
        fmt::format("{} bytes in extents of {} are too many for one session: raise dataplane.extent_bytes",
                    total, session_.agreement().extent_bytes)};
  }
  return {};
}

Status Destination::check_same(const peer::TransferOffer& offer) const {
  bool same = static_cast<size_t>(offer.files_size()) == files_.size();
  for (int i = 0; same && i < offer.files_size(); ++i) {
    const journal::FileRecord& record = files_[static_cast<size_t>(i)].record;
    same = offer.files(i).path() == record.name() && offer.files(i).size() == record.size() &&
           (offer.files(i).mtime_ns() == record.mtime_ns() || discards());
  }
  if (same) return {};
  return Error{ErrorCode::kIntegrity,
               "the peer offers other files than this session began with: nothing was stored, begin another"};
}

asio::awaitable<Status> Destination::prepare(const peer::TransferOffer& offer) {
  if (const Status status = check_offer(offer); !status) co_return status;
  if (receiver_) {
    if (const Status status = check_same(offer); !status) co_return status;
    if (const Status status = co_await reopen(false); !status) co_return status;
  } else if (const Status status = co_await create(offer); !status) {
    co_return status;
  }
  for (uint32_t i = 0; i < files_.size(); ++i) {
    files_[i].open = false;
    const bool turn = i < board::kOpenObjectsMax || receiver_->done(ObjectId(i - board::kOpenObjectsMax));
    if (!turn || receiver_->done(ObjectId(i))) continue;
    if (session_.failed()) co_return Status();
    const Status status = co_await open_object(i);
    if (!status) co_return status;
  }
  co_return Status();
}

asio::awaitable<Status> Destination::create(const peer::TransferOffer& offer) {
  Files created;
  if (!discards()) {
    auto work = [context = session_.context(), offer] { return create_files(context->exports, offer); };
    auto result = co_await in_pool(session_.context(), std::move(work));
    if (!result) co_return result.error();
    created = std::move(*result);
  }
  for (int i = 0; i < offer.files_size(); ++i) {
    File file{.record = new_record(offer, offer.files(i))};
    if (!discards()) {
      journal::FileRecord& record = file.record;
      file.file = std::move(created[static_cast<size_t>(i)]);
      record.set_shown(file.file->final_path());
      record.set_path(file.file->name_path());
      record.set_device(file.file->identity().device);
      record.set_inode(file.file->identity().inode);
    }
    files_.push_back(std::move(file));
  }
  make_receiver();
  co_return Status();
}

void Destination::make_receiver() {
  Indexed<ObjectId, recovery::Layout> layouts;
  bytes_total_ = 0;
  for (const File& file : files_) {
    bytes_total_ += file.record.size();
    layouts.push_back({.size_bytes = file.record.size(),
                       .extent_bytes = session_.agreement().extent_bytes,
                       .crc_kind = session_.agreement().crc_kind});
  }
  const config::Node& node = session_.context()->node;
  receiver_ = std::make_unique<recovery::Receiver>(
      layouts, session_.agreement().lanes,
      recovery::Receiver::Options{.sync_lag_bytes = node.sync_lag_bytes,
                                  .sync_lag_ns = node.sync_lag_ms * 1'000'000ULL});
}

Result<std::unique_ptr<DataEnd>> Destination::restore(Session& session, std::vector<SavedFile> files) {
  auto destination = std::make_unique<Destination>(session);
  for (SavedFile& file : files) destination->files_.push_back({.record = std::move(file.record)});
  destination->make_receiver();
  for (uint32_t i = 0; i < files.size(); ++i) {
    for (const recovery::Block& block : files[i].blocks) {
      const Status status = destination->receiver_->restore(ObjectId(i), block);
      if (!status) {
        return Error{ErrorCode::kStorage,
                     destination->files_[i].record.shown() + ": " + status.error().message};
      }
    }
  }
  destination->receiver_->finish_restore();
  const exports::Exports& exports = session.context()->exports;
  for (uint32_t i = 0; i < files.size(); ++i) {
    File& file = destination->files_[i];
    if (file.record.state() == journal::FileRecord::DONE) {
      destination->receiver_->set_done(ObjectId(i), file.record.digest());
    } else if (!session.agreement().discard) {
      const exports::FileIdentity identity{file.record.device(), file.record.inode()};
      // The rename may have come through before the former control could say so.
      const auto committed =
          finished(file.record) ? exports.is_committed(file.record.path(), identity) : false;
      if (committed && *committed) {
        destination->receiver_->set_done(ObjectId(i), file.record.digest());
        continue;
      }
      // Held from now on, so that no other session takes the name. The dataplane may still have it.
      auto reopened = exports.reopen_destination(spec_of(file.record), identity, UniqueFd());
      if (reopened && reopened->has_value()) {
        file.file = std::make_shared<exports::DestinationFile>(std::move(**reopened));
      }
    }
  }
  return std::unique_ptr<DataEnd>(std::move(destination));
}

// Every unfinished file has a descriptor afterwards.
asio::awaitable<Status> Destination::reopen(bool fetch) {
  for (uint32_t i = 0; i < files_.size() && !discards(); ++i) {
    if (files_[i].file || receiver_->done(ObjectId(i))) continue;
    UniqueFd fd;
    if (fetch) {
      Result<UniqueFd> fetched = co_await session_.context()->board->fetch_object(session_.slot(), i);
      if (session_.failed()) co_return Status();
      if (fetched) fd = std::move(*fetched);
      files_[i].open = static_cast<bool>(fd);
    }
    const Status status = co_await reopen_file(i, std::move(fd));
    if (!status) co_return status;
  }
  co_return Status();
}

asio::awaitable<Status> Destination::reopen_file(uint32_t index, UniqueFd fd) {
  File& file = files_[index];
  const exports::FileIdentity identity{file.record.device(), file.record.inode()};
  auto work = [context = session_.context(), spec = spec_of(file.record), identity,
               fd = std::make_shared<UniqueFd>(std::move(fd))] {
    return context->exports.reopen_destination(spec, identity, std::move(*fd));
  };
  auto reopened = co_await in_pool(session_.context(), std::move(work));
  if (!reopened) co_return reopened.error();
  if (reopened->has_value()) {
    file.file = std::make_shared<exports::DestinationFile>(std::move(**reopened));
    co_return Status();
  }
  co_return co_await begin_anew(index);
}

// The unfinished file is gone: what the journal says of it is worth nothing.
asio::awaitable<Status> Destination::begin_anew(uint32_t index) {
  File& file = files_[index];
  spdlog::warn("{}: {}: its unfinished file is gone; it begins anew", session_.log_name(),
               file.record.shown());
  auto work = [context = session_.context(), spec = spec_of(file.record)] {
    return context->exports.create_destination(spec);
  };
  auto created = co_await in_pool(session_.context(), std::move(work));
  if (!created) co_return created.error();
  file.file = std::make_shared<exports::DestinationFile>(std::move(*created));
  file.record.set_state(journal::FileRecord::OPEN);
  file.record.set_device(file.file->identity().device);
  file.record.set_inode(file.file->identity().inode);
  receiver_->begin_anew(ObjectId(index));
  journal::Batch batch;
  batch.restart.emplace_back(session_.id(), index);
  batch.files.push_back({session_.id(), index, file.record});
  co_return co_await session_.write_journal(std::move(batch), journal::Durability::kPower);
}

asio::awaitable<Status> Destination::open_object(uint32_t index) {
  File& file = files_[index];
  if (file.record.size() == 0 || session_.board_lost() || file.open) co_return Status();
  BoardClient& board = *session_.context()->board;
  uint32_t flags = board::kObjectWrite;
  if (!file.file) {
    flags |= board::kObjectDiscard;
  } else if (file.file->direct()) {
    flags |= board::kObjectDirect;
  }
  const int fd = file.file ? file.file->fd() : -1;
  const Status status = co_await board.open_object(session_.slot(), index, flags, file.record.size(),
                                                   session_.agreement().extent_bytes, fd);
  if (status) file.open = true;
  co_return status;
}

// Its number may be used again before the source hears that it is done.
asio::awaitable<Status> Destination::open_next(uint32_t index) {
  const uint32_t next = index + board::kOpenObjectsMax;
  if (next >= files_.size() || session_.failed()) co_return Status();
  if (files_[index].open) co_await session_.context()->board->close_object(session_.slot(), index);
  files_[index].open = false;
  if (session_.failed() || receiver_->done(ObjectId(next))) co_return Status();
  co_return co_await open_object(next);
}

asio::awaitable<Status> Destination::adopt() {
  Status status = co_await reopen(true);
  if (!status || session_.failed()) co_return status;
  detectors_.clear();
  std::vector<ObjectId> open;
  for (uint32_t lane = 0; lane < session_.lanes().size(); ++lane) {
    detectors_.emplace_back(session_.flow(lane).control.settled_below.load(std::memory_order_acquire));
  }
  for (uint32_t i = 0; i < files_.size(); ++i) {
    if (discards()) files_[i].open = i < board::kOpenObjectsMax && files_[i].record.size() != 0;
    if (files_[i].open) open.emplace_back(i);
  }
  receiver_->adopt(static_cast<uint32_t>(session_.lanes().size()), open, monotonic_ns());
  take();
  const uint64_t deadline_ns = monotonic_ns() + kAdoptTimeoutNs;
  while (receiver_->adopting() && !session_.failed() && monotonic_ns() < deadline_ns) {
    co_await session_.changed().wait_for(std::chrono::milliseconds(20));
  }
  if (receiver_->adopting() && !session_.failed()) {
    status = Error{ErrorCode::kDaemonNotRunning, "the dataplane does not say what it has: opening new flows"};
  }
  co_return status;
}

asio::awaitable<void> Destination::release(bool keep) {
  Files files;
  for (File& file : files_) {
    if (!file.file) continue;
    if (keep) file.file->keep();
    files.push_back(std::move(file.file));
  }
  if (files.empty()) co_return;
  // Removing a large unfinished file takes its time.
  auto work = [files = std::move(files)]() mutable {
    files.clear();
    return 0;
  };
  (void)co_await in_pool(session_.context(), std::move(work));
}

std::vector<journal::FileRecord> Destination::records() const {
  std::vector<journal::FileRecord> records;
  for (uint32_t i = 0; i < files_.size(); ++i) {
    records.push_back(receiver_->done(ObjectId(i)) ? record_of(i, journal::FileRecord::DONE)
                                                   : files_[i].record);
  }
  return records;
}

journal::FileRecord Destination::record_of(uint32_t index, journal::FileRecord::State state) const {
  journal::FileRecord record = files_[index].record;
  record.set_state(state);
  record.set_digest(receiver_->digest(ObjectId(index)));
  return record;
}

}  // namespace sluice::control
