// SPDX-License-Identifier: Apache-2.0
#include "control/session/destination.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

namespace sluice::control {
namespace {

constexpr auto kLastWordTimeout = std::chrono::seconds(5);
constexpr uint64_t kBytesTotalMax = 1ULL << 62;

using Files = std::vector<std::shared_ptr<exports::DestinationFile>>;

// Creates all files, or none: those made before an error are removed by their destructors.
Result<std::vector<std::shared_ptr<exports::DestinationFile>>> create_files(
    const exports::Exports& exports, const peer::TransferOffer& offer) {
  Files files;
  for (const peer::File& file : offer.files()) {
    exports::DestinationSpec spec;
    spec.path = offer.destination();
    spec.is_directory = offer.destination_is_directory();
    spec.name = file.path();
    spec.size = file.size();
    spec.mode = file.mode() & 07777;
    spec.mtime_ns = file.mtime_ns();
    spec.overwrite = offer.overwrite();
    Result<exports::DestinationFile> created = exports.create_destination(spec);
    if (!created) return created.error();
    files.push_back(std::make_shared<exports::DestinationFile>(std::move(*created)));
  }
  return files;
}

}  // namespace

Destination::Destination(Session& session) : session_(session), detectors_(session.agreement().lanes) {}

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
  return {};
}

asio::awaitable<Status> Destination::prepare(const peer::TransferOffer& offer) {
  if (const Status status = check_offer(offer); !status) co_return status;
  destination_ = offer.destination();
  const bool discard = session_.agreement().discard;
  Files files;
  if (!discard) {
    auto work = [context = session_.context(), offer] { return create_files(context->exports, offer); };
    auto created = co_await in_pool(session_.context(), std::move(work));
    if (!created) co_return created.error();
    files = std::move(*created);
  }
  for (int i = 0; i < offer.files_size(); ++i) {
    Object object;
    object.meta = offer.files(i);
    object.written = recovery::ExtentMap(object.meta.size(), session_.agreement().extent_bytes);
    object.final_path = std::string(kNullDestination);
    if (!discard) {
      object.file = std::move(files[static_cast<size_t>(i)]);
      object.final_path = object.file->final_path();
    }
    bytes_total_ += object.meta.size();
    objects_.push_back(std::move(object));
  }
  prepared_ = true;
  for (uint32_t i = 0; i < objects_.size() && i < board::kOpenObjectsMax; ++i) {
    if (session_.failed()) co_return Status();
    const Status status = co_await open_object(i);
    if (!status) co_return status;
  }
  co_return Status();
}

asio::awaitable<Status> Destination::open_object(uint32_t index) {
  Object& object = objects_[index];
  active_.push_back(index);
  if (object.meta.size() == 0 || session_.board_lost()) co_return Status();
  BoardClient& board = *session_.context()->board;
  uint32_t flags = board::kObjectWrite;
  if (!object.file) {
    flags |= board::kObjectDiscard;
  } else if (object.file->direct()) {
    flags |= board::kObjectDirect;
  }
  const int fd = object.file ? object.file->fd() : -1;
  const Status status = co_await board.open_object(session_.slot(), index, flags, object.meta.size(),
                                                   session_.agreement().extent_bytes, fd);
  if (status) object.open = true;
  co_return status;
}

peer::PeerMessage Destination::ready() const {
  peer::PeerMessage message;
  peer::TransferReady* ready = message.mutable_transfer_ready();
  for (const Lane& lane : session_.lanes()) {
    ready->add_flow_ids(lane.flow_id);
    ready->add_credit_extents(lane.credit);
  }
  for (const Object& object : objects_) ready->add_final_paths(object.final_path);
  return message;
}

asio::awaitable<Status> Destination::run() {
  now_ns_ = monotonic_ns();
  while (!session_.failed() && !complete()) co_await session_.changed().wait();
  if (session_.failed()) co_return Status();
  peer::PeerMessage message;
  message.mutable_session_done()->set_files(objects_.size());
  message.mutable_session_done()->set_bytes(bytes_total_);
  if (session_.stream_open()) session_.send(message);
  // Until the source has answered, its retransmissions and probes still find their flows.
  const auto deadline = std::chrono::steady_clock::now() + kLastWordTimeout;
  while (!session_.failed() && !peer_ended_ && session_.stream_open() &&
         std::chrono::steady_clock::now() < deadline) {
    co_await session_.changed().wait_for(kLastWordTimeout);
  }
  co_return Status();
}

void Destination::on_message(const peer::PeerMessage& message) {
  switch (message.body_case()) {
    case peer::PeerMessage::kPartitionSent:
      return partition_sent(message.partition_sent());
    case peer::PeerMessage::kFileDigest:
      return file_digest(message.file_digest());
    case peer::PeerMessage::kSessionDone:
      if (!complete()) {
        return session_.fail(
            {ErrorCode::kIncompatible, "the source ended the session before its files were done"});
      }
      peer_ended_ = true;
      return;
    default:
      return session_.fail({ErrorCode::kIncompatible, fmt::format("the peer sent message {} to a destination",
                                                                  static_cast<int>(message.body_case()))});
  }
}

void Destination::partition_sent(const peer::PartitionSent& sent) {
  if (sent.object() >= objects_.size() || sent.lane() >= session_.lanes().size()) {
    return session_.fail({ErrorCode::kIncompatible, "the peer reports a partition of no file or lane"});
  }
  Object& object = objects_[sent.object()];
  if (object.done) return;
  if (!object.planner.sent(object.written, sent.lane(), {sent.range().offset(), sent.range().length()},
                           now_ns_)) {
    session_.fail({ErrorCode::kIncompatible,
                   fmt::format("the peer reports a partition outside {}", object.meta.path())});
  }
}

void Destination::file_digest(const peer::FileDigest& digest) {
  if (digest.object() >= objects_.size()) {
    return session_.fail({ErrorCode::kIncompatible, "the peer sends the digest of no file"});
  }
  Object& object = objects_[digest.object()];
  if (object.source_digest) return;
  object.source_digest = digest;
  finish_if_complete(digest.object());
}

asio::awaitable<void> Destination::release() {
  Files files;
  for (Object& object : objects_) {
    if (object.file) files.push_back(std::move(object.file));
  }
  if (files.empty()) co_return;
  // Removing a large unfinished file takes its time.
  auto work = [files = std::move(files)]() mutable {
    files.clear();
    return 0;
  };
  (void)co_await in_pool(session_.context(), std::move(work));
}

uint64_t Destination::bytes_done(const FlowFigures& /*figures*/) const { return bytes_written_; }

uint64_t Destination::progress(const FlowFigures& figures) const {
  return figures.bytes + bytes_written_ + steps_;
}

std::string Destination::waiting_for(const FlowFigures& before, const FlowFigures& now, uint64_t interval_ns,
                                     uint64_t now_ns) const {
  constexpr uint64_t kSilenceNs = 500'000'000;
  if (blocking_ != 0 && now.bytes == before.bytes) return "fsync";
  if (bytes_written_ == bytes_total_) return "";
  if (now.last_peer_ns + kSilenceNs < now_ns) return "network (no data from peer)";
  if (now.no_buffer_drops != before.no_buffer_drops && interval_ns != 0) return "disk";
  return "";
}

void Destination::describe(api::Session* session) const {
  const wire::CrcKind kind = session_.agreement().crc_kind;
  for (size_t i = 0; i < objects_.size(); ++i) {
    const Object& object = objects_[i];
    api::FileProgress* file = session->add_files();
    file->set_object(static_cast<uint32_t>(i));
    file->set_source(object.meta.path());
    file->set_destination(object.final_path);
    file->set_size(object.meta.size());
    file->set_bytes_done(object.written.set_bytes());
    file->set_done(object.done);
    if (object.source_digest) file->set_digest_source(digest_hex(kind, object.source_digest->digest()));
    if (object.written.complete()) file->set_digest_destination(digest_hex(kind, object.digest));
  }
}

}  // namespace sluice::control
