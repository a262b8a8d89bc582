// The receiving end's way to durability: group commit, the final name, and what the journal says meanwhile.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "control/exports/read_back.h"
#include "control/session/destination.h"
#include "control/session/ranges.h"

namespace sluice::control {

// The extents taken were written before the sync begins; the journal says so after it has ended; the peer
// hears it after that.
asio::awaitable<void> Destination::sync(uint32_t index) {
  ++blocking_;
  const Status status = co_await make_durable(index);
  --blocking_;
  ++steps_;
  if (!status) session_.fail(status.error());
  take();
}

// Also what was written after the attempt had failed. Whoever restarts this control finds all of it.
void Destination::settle() {
  for (uint32_t i = 0; receiver_ && i < files_.size(); ++i) {
    if (!discards() && !files_[i].file) continue;
    if (receiver_->begin_sync(ObjectId(i)) != 0) session_.spawn(sync(i));
  }
  if (receiver_) take();
}

asio::awaitable<Status> Destination::make_durable(uint32_t index) {
  if (discards()) {
    (void)receiver_->sync_succeeded(
        ObjectId(index));  // as certain as it will ever be; the journal need not know
  } else {
    const auto file = files_[index].file;
    auto work = [file] { return file->sync(); };
    const Status synced = co_await in_pool(session_.context(), std::move(work));
    if (!synced) {
      spdlog::warn("{}: {}; asking for what is not certain again", session_.log_name(),
                   synced.error().message);
      const Status noted = co_await suspect(index);
      if (!noted) spdlog::warn("{}: {}", session_.log_name(), noted.error().message);
      co_return receiver_->sync_failed(ObjectId(index)) ? Status() : synced;
    }
    journal::Batch batch;
    batch.blocks.push_back({session_.id(), index, receiver_->sync_succeeded(ObjectId(index))});
    const Status written = co_await session_.write_journal(std::move(batch), journal::Durability::kPower);
    if (!written) {
      receiver_->not_journalled(ObjectId(index));
      co_return written;
    }
  }
  const auto begin = [index](peer::PeerMessage* message) {
    message->mutable_partition_done()->set_object(index);
    return message->mutable_partition_done()->mutable_ranges();
  };
  send_ranges(receiver_->journalled(ObjectId(index)), begin,
              [this](const auto& message) { session_.send(message); });
  co_return Status();
}

asio::awaitable<void> Destination::finish(uint32_t index) {
  ++blocking_;
  Status status = co_await make_final(index);
  --blocking_;
  ++steps_;
  if (status) {
    receiver_->set_done(ObjectId(index), receiver_->digest(ObjectId(index)));
    status = co_await open_next(index);
  }
  if (!status) session_.fail(status.error());
  if (receiver_->done(ObjectId(index))) send_done(index);
  session_.changed().notify();
}

// FINISHING is in the journal before the name is there: found again with that inode, it is done.
asio::awaitable<Status> Destination::make_final(uint32_t index) {
  const auto file = files_[index].file;
  if (!file) co_return Status();
  auto finish = [file] { return file->finish(); };
  Status status = co_await in_pool(session_.context(), std::move(finish));
  if (status && files_[index].record.suspect()) status = co_await read_back(index);
  if (!status) co_return status;
  journal::Batch batch;
  batch.files.push_back({session_.id(), index, record_of(index, journal::FileRecord::FINISHING)});
  status = co_await session_.write_journal(std::move(batch), journal::Durability::kPower);
  if (!status) co_return status;
  auto commit = [file] { return file->commit(); };
  status = co_await in_pool(session_.context(), std::move(commit));
  if (!status) co_return status;
  files_[index].file.reset();
  journal::Batch done;
  done.files.push_back({session_.id(), index, record_of(index, journal::FileRecord::DONE)});
  // If this is lost, the inode under the final name says the same.
  const Status noted = co_await session_.write_journal(std::move(done), journal::Durability::kProcess);
  if (!noted) spdlog::warn("{}: {}", session_.log_name(), noted.error().message);
  co_return Status();
}

// A disk that failed once may have lost more than it said, even of what it had called certain: the file
// system's own blocks are written without anybody waiting for them.
asio::awaitable<Status> Destination::suspect(uint32_t index) {
  files_[index].record.set_suspect(true);
  journal::Batch batch;
  batch.files.push_back({session_.id(), index, files_[index].record});
  co_return co_await session_.write_journal(std::move(batch), journal::Durability::kPower);
}

asio::awaitable<Status> Destination::read_back(uint32_t index) {
  const journal::FileRecord& record = files_[index].record;
  const wire::CrcKind kind = session_.agreement().crc_kind;
  spdlog::info("{}: {}: reading it back, since its disk failed meanwhile", session_.log_name(),
               record.shown());
  auto work = [file = files_[index].file, kind, size = record.size()] {
    return read_back_crc(file->fd(), kind, size);
  };
  const Result<uint64_t> crc = co_await in_pool(session_.context(), std::move(work));
  if (!crc) co_return Error{crc.error().code, record.shown() + ": " + crc.error().message};
  if (*crc == receiver_->digest(ObjectId(index))) co_return Status();
  co_return Error{
      ErrorCode::kIntegrity,
      fmt::format("{}: its disk failed meanwhile, and now gives back other bytes than were written: "
                  "nothing was stored; check the disk and its file system, then send it again",
                  record.shown())};
}

void Destination::send_done(uint32_t index) {
  peer::PeerMessage message;
  message.mutable_file_done()->set_object(index);
  message.mutable_file_done()->set_digest(receiver_->digest(ObjectId(index)));
  session_.send(message);
}

}  // namespace sluice::control
