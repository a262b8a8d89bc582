// SPDX-License-Identifier: Apache-2.0
#include "control/session/source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "dataplane/crc/crc.h"

namespace sluice::control {
namespace {

constexpr uint32_t kOpenAhead = 16;    // objects opened before their turn
constexpr uint64_t kPartsPerLane = 4;  // a session's data is cut at least so finely
constexpr auto kLastWordTimeout = std::chrono::seconds(5);

}  // namespace

Source::Source(Session& session, std::vector<SourceItem> items) : session_(session) {
  for (SourceItem& item : items) {
    bytes_total_ += item.size;
    Object object;
    object.sent = recovery::ExtentMap(item.size, session.agreement().extent_bytes);
    object.item = std::move(item);
    objects_.push_back(std::move(object));
  }
  const Agreement& agreement = session.agreement();
  lanes_.resize(agreement.lanes);
  part_bytes_ = agreement.partition_bytes;
  if (agreement.lanes > 1) {
    const uint64_t share = bytes_total_ / (agreement.lanes * kPartsPerLane) / agreement.extent_bytes + 1;
    part_bytes_ = std::min(part_bytes_, share * agreement.extent_bytes);
  }
}

peer::PeerMessage Source::offer(const std::string& destination, bool overwrite) const {
  peer::PeerMessage message;
  peer::TransferOffer* offer = message.mutable_transfer_offer();
  for (size_t i = 0; i < objects_.size(); ++i) {
    const SourceItem& item = objects_[i].item;
    peer::File* file = offer->add_files();
    file->set_object(static_cast<uint32_t>(i));
    file->set_path(item.name);
    file->set_size(item.size);
    file->set_mode(item.mode);
    file->set_mtime_ns(item.mtime_ns);
  }
  offer->set_destination(destination);
  offer->set_destination_is_directory(destination.ends_with('/') || objects_.size() > 1);
  offer->set_overwrite(overwrite);
  return message;
}

Status Source::take_ready(const peer::TransferReady& ready) {
  const auto lanes = static_cast<int>(session_.lanes().size());
  if (ready.flow_ids_size() != lanes || ready.credit_extents_size() != lanes) {
    return Error{ErrorCode::kIncompatible, "the peer is ready with another number of flows than agreed"};
  }
  if (std::count(ready.flow_ids().begin(), ready.flow_ids().end(), 0U) != 0) {
    return Error{ErrorCode::kIncompatible, "the peer gave a flow no id"};
  }
  for (int i = 0; i < ready.final_paths_size() && i < static_cast<int>(objects_.size()); ++i) {
    objects_[static_cast<size_t>(i)].destination = ready.final_paths(i);
  }
  return {};
}

asio::awaitable<Status> Source::run() {
  now_ns_ = monotonic_ns();
  rate_.emplace(session_.agreement().rate_bps, now_ns_);
  session_.spawn(open_objects());
  for (uint32_t i = 0; i < objects_.size(); ++i) send_digest_if_complete(i);  // empty files
  while (!session_.failed() && !complete()) co_await session_.changed().wait();
  // Every file stands at the peer; its last word is only politeness.
  const auto deadline = std::chrono::steady_clock::now() + kLastWordTimeout;
  while (!session_.failed() && !peer_ended_ && session_.stream_open() &&
         std::chrono::steady_clock::now() < deadline) {
    co_await session_.changed().wait_for(kLastWordTimeout);
  }
  if (!session_.failed() && session_.stream_open()) {
    peer::PeerMessage message;
    message.mutable_session_done()->set_files(objects_.size());
    message.mutable_session_done()->set_bytes(bytes_total_);
    session_.send(message);
  }
  co_return Status();
}

asio::awaitable<void> Source::open_objects() {
  for (uint32_t i = 0; i < objects_.size(); ++i) {
    if (objects_[i].item.size == 0) continue;
    const auto due = [&] {
      return i < cursor_ + kOpenAhead &&
             (i < board::kOpenObjectsMax || objects_[i - board::kOpenObjectsMax].done);
    };
    while (!session_.failed() && !due()) co_await session_.changed().wait();
    if (session_.failed()) co_return;
    const Status status = co_await open_object(i);
    if (!status) {
      session_.fail(status.error());
      co_return;
    }
    objects_[i].open = true;
    feed();
  }
}

asio::awaitable<Status> Source::open_object(uint32_t index) {
  BoardClient& board = *session_.context()->board;
  if (index >= board::kOpenObjectsMax) {
    const uint32_t before = index - board::kOpenObjectsMax;
    if (objects_[before].open) co_await board.close_object(session_.slot(), before);
    objects_[before].open = false;
    if (session_.board_lost()) co_return Status();
  }
  const SourceItem& item = objects_[index].item;
  const uint32_t flags = !item.file ? board::kObjectGenerate : item.file->direct ? board::kObjectDirect : 0U;
  const int fd = item.file ? item.file->fd.get() : -1;
  co_return co_await board.open_object(session_.slot(), index, flags, item.size,
                                       session_.agreement().extent_bytes, fd);
}

void Source::on_message(const peer::PeerMessage& message) {
  switch (message.body_case()) {
    case peer::PeerMessage::kNeed:
      return repair(message.need());
    case peer::PeerMessage::kFileDone:
      return file_done(message.file_done());
    case peer::PeerMessage::kPartitionDone: {
      const uint32_t index = message.partition_done().object();
      if (index >= objects_.size()) return;
      Object& object = objects_[index];
      for (const peer::ByteRange& range : message.partition_done().ranges()) {
        object.bytes_durable += std::min(range.length(), object.item.size - object.bytes_durable);
      }
      ++steps_;
      return;
    }
    case peer::PeerMessage::kSessionDone:
      peer_ended_ = true;
      return;
    default:
      return session_.fail({ErrorCode::kIncompatible, fmt::format("the peer sent message {} to a source",
                                                                  static_cast<int>(message.body_case()))});
  }
}

void Source::file_done(const peer::FileDone& done) {
  if (done.object() >= objects_.size() || objects_[done.object()].done) return;
  Object& object = objects_[done.object()];
  if (!object.digest_sent || done.digest() != object.digest) {
    const wire::CrcKind kind = session_.agreement().crc_kind;
    return session_.fail(
        {ErrorCode::kIntegrity,
         fmt::format("{}: digest {} here, {} at the peer: do not trust the copy, send it again",
                     object.item.shown, digest_hex(kind, object.digest), digest_hex(kind, done.digest()))});
  }
  object.done = true;
  object.peer_digest = done.digest();
  object.placed.clear();
  ++done_;
  ++steps_;
}

asio::awaitable<void> Source::release() {
  for (Object& object : objects_) object.item.file.reset();
  co_return;
}

uint64_t Source::bytes_done(const FlowFigures& figures) const {
  if (complete()) return bytes_total_;
  uint64_t done = 0;
  for (const Object& object : objects_) done += object.done ? object.item.size : object.bytes_durable;
  return std::min(bytes_total_, std::max(done, figures.bytes_done));
}

uint64_t Source::progress(const FlowFigures& figures) const {
  return figures.bytes + figures.bytes_done + steps_;
}

std::string Source::waiting_for(const FlowFigures& before, const FlowFigures& now, uint64_t interval_ns,
                                uint64_t now_ns) const {
  const std::string wait = sender_wait(before, now, interval_ns, now_ns);
  if (!wait.empty()) return wait;
  const bool all_sent =
      std::all_of(objects_.begin(), objects_.end(), [](const Object& o) { return o.digest_sent; });
  return all_sent ? "peer's disk (sync)" : "";
}

void Source::describe(api::Session* session) const {
  const wire::CrcKind kind = session_.agreement().crc_kind;
  for (size_t i = 0; i < objects_.size(); ++i) {
    const Object& object = objects_[i];
    api::FileProgress* file = session->add_files();
    file->set_object(static_cast<uint32_t>(i));
    file->set_source(object.item.shown);
    file->set_destination(object.destination);
    file->set_size(object.item.size);
    file->set_bytes_done(object.done ? object.item.size : object.bytes_durable);
    file->set_done(object.done);
    if (object.digest_sent) file->set_digest_source(digest_hex(kind, object.digest));
    if (object.done) file->set_digest_destination(digest_hex(kind, object.peer_digest));
  }
}

}  // namespace sluice::control
