// SPDX-License-Identifier: Apache-2.0
#include "control/session/destination.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "control/session/ranges.h"

namespace sluice::control {
namespace {

constexpr auto kLastWordTimeout = std::chrono::seconds(5);

}  // namespace

peer::PeerMessage Destination::ready() const {
  peer::PeerMessage message;
  peer::TransferReady* ready = message.mutable_transfer_ready();
  for (const Lane& lane : session_.lanes()) {
    ready->add_flow_ids(lane.flow_id);
    ready->add_credit_extents(lane.credit);
  }
  for (const File& file : files_) ready->add_final_paths(file.record.shown());
  return message;
}

void Destination::start_attempt() {
  detectors_.assign(session_.lanes().size(), {});
  peer_ended_ = false;
  receiver_->start_attempt(static_cast<uint32_t>(session_.lanes().size()), monotonic_ns());
}

void Destination::send_states() {
  for (uint32_t i = 0; i < files_.size(); ++i) {
    if (receiver_->done(ObjectId(i))) {
      peer::PeerMessage message;
      peer::ObjectState* state = message.mutable_object_state();
      state->set_object(i);
      state->set_done(true);
      state->set_digest(receiver_->digest(ObjectId(i)));
      session_.send(message);
      continue;
    }
    const auto held = [i](peer::PeerMessage* message) {
      message->mutable_object_state()->set_object(i);
      return message->mutable_object_state()->mutable_held();
    };
    send_ranges(receiver_->held(ObjectId(i)), held, [this](const auto& message) { session_.send(message); });
  }
  peer::PeerMessage end;
  end.mutable_object_state()->set_end(true);
  session_.send(end);
}

void Destination::on_new_stream() {
  // An extent that the source's worker has seen completed is in the states: its event came before.
  session_.context()->board->poll_now();
  send_states();
}

asio::awaitable<Status> Destination::run() {
  take();
  while (!session_.failed() && !complete()) co_await session_.changed().wait();
  if (session_.failed()) co_return Status();
  peer::PeerMessage message;
  message.mutable_session_done()->set_files(files_.size());
  message.mutable_session_done()->set_bytes(bytes_total_);
  session_.send(message);
  // Until the source has answered, its retransmissions and probes still find their flows.
  const auto deadline = std::chrono::steady_clock::now() + kLastWordTimeout;
  while (!session_.failed() && !peer_ended_ && session_.stream_open() &&
         std::chrono::steady_clock::now() < deadline) {
    co_await session_.changed().wait_for(kLastWordTimeout);
  }
  co_return Status();
}

void Destination::on_message(const peer::PeerMessage& message) {
  const auto wrong = [&](const char* what) { session_.fail({ErrorCode::kIncompatible, what}); };
  switch (message.body_case()) {
    case peer::PeerMessage::kPartitionSent: {
      const peer::PartitionSent& sent = message.partition_sent();
      if (sent.lane() >= session_.lanes().size() ||
          !receiver_->partition_sent(ObjectId(sent.object()), LaneId(sent.lane()),
                                     {.offset = sent.range().offset(), .length = sent.range().length()})) {
        wrong("the peer reports a partition of no file or lane");
      }
      return;
    }
    case peer::PeerMessage::kFileDigest: {
      const peer::FileDigest& digest = message.file_digest();
      if (!receiver_->file_digest(ObjectId(digest.object()),
                                  {.size_bytes = digest.size(), .digest = digest.digest()})) {
        return wrong("the peer sends the digest of no file, or of another size");
      }
      return take();
    }
    case peer::PeerMessage::kSessionDone:
      if (!complete()) return wrong("the source ended the session before its files were done");
      peer_ended_ = true;
      return;
    default:
      return session_.fail({ErrorCode::kIncompatible, fmt::format("the peer sent message {} to a destination",
                                                                  static_cast<int>(message.body_case()))});
  }
}

void Destination::on_event(const board::Event& event, uint32_t /*lane*/) {
  if (event.object >= files_.size()) return;
  if (event.kind == board::EventKind::kExtentFailed) return extent_failed(event);
  receiver_->on_event(event);
  if (!session_.failed()) take();
}

void Destination::extent_failed(const board::Event& event) {
  const int error = static_cast<int>(event.value);
  const std::string& path = files_[event.object].record.shown();
  files_[event.object].record.set_suspect(true);
  if (error == ENOSPC || error == EDQUOT) {
    return session_.fail({ErrorCode::kNoSpace, path + ": the file system became full: free space"});
  }
  session_.fail({ErrorCode::kStorage, fmt::format("{}: writing at byte {} failed: {}: check the disk", path,
                                                  event.offset, std::strerror(error))});
}

void Destination::on_tick(uint64_t now_ns) {
  for (uint32_t lane = 0; lane < detectors_.size(); ++lane) {
    recovery::detect_losses(&detectors_[lane], &session_.flow(lane), now_ns);
  }
  receiver_->tick(now_ns);
  take();
}

void Destination::take() {
  const recovery::Receiver::Actions out = receiver_->take_actions();
  for (const recovery::LaneCommand& command : out.commands) session_.command(command);
  for (const recovery::Need& need : out.needs) send_need(need);
  for (const ObjectId object : out.differ) {
    const wire::CrcKind kind = session_.agreement().crc_kind;
    session_.fail({ErrorCode::kIntegrity,
                   fmt::format("{}: digest {} was sent, {} was received: nothing was stored, send it again",
                               files_[object.value()].record.shown(),
                               digest_hex(kind, *receiver_->source_digest(object)),
                               digest_hex(kind, receiver_->digest(object)))});
  }
  for (const ObjectId object : out.syncs) {
    if (!discards() && !files_[object.value()].file) continue;  // not open yet: it will be due again
    if (receiver_->begin_sync(object) != 0) session_.spawn(sync(object.value()));
  }
  for (const ObjectId object : out.finished) session_.spawn(finish(object.value()));
}

void Destination::send_need(const recovery::Need& need) {
  spdlog::debug("{}: {} needs {} range(s) again", session_.log_name(),
                files_[need.object.value()].record.shown(), need.ranges.size());
  const auto begin = [&](peer::PeerMessage* message) {
    message->mutable_need()->set_object(need.object.value());
    message->mutable_need()->set_lane(need.lane.value());
    return message->mutable_need()->mutable_ranges();
  };
  send_ranges(need.ranges, begin, [this](const auto& message) { session_.send(message); });
}

uint64_t Destination::bytes_done(const FlowFigures& /*figures*/) const {
  return receiver_ ? receiver_->bytes_written() : 0;
}

uint64_t Destination::progress(const FlowFigures& figures) const {
  return figures.bytes + receiver_->bytes_written() + steps_;
}

std::string Destination::waiting_for(const FlowFigures& before, const FlowFigures& now, uint64_t interval_ns,
                                     uint64_t now_ns) const {
  constexpr uint64_t kSilenceNs = 500'000'000;
  if (blocking_ != 0 && now.bytes == before.bytes) return "fsync";
  if (receiver_->bytes_written() == bytes_total_) return "";
  if (now.last_peer_ns + kSilenceNs < now_ns) return "network (no data from peer)";
  if (now.no_buffer_drops != before.no_buffer_drops && interval_ns != 0) return "disk";
  return "";
}

void Destination::describe(api::Session* session) const {
  const wire::CrcKind kind = session_.agreement().crc_kind;
  for (uint32_t i = 0; i < files_.size() && receiver_; ++i) {
    const journal::FileRecord& record = files_[i].record;
    api::FileProgress* file = session->add_files();
    file->set_object(i);
    file->set_source(record.name());
    file->set_destination(record.shown());
    file->set_size(record.size());
    const bool done = receiver_->done(ObjectId(i));
    file->set_bytes_done(done ? record.size() : receiver_->written(ObjectId(i)).set_bytes());
    file->set_done(done);
    if (const auto digest = receiver_->source_digest(ObjectId(i)))
      file->set_digest_source(digest_hex(kind, *digest));
    if (done || receiver_->written(ObjectId(i)).complete())
      file->set_digest_destination(digest_hex(kind, receiver_->digest(ObjectId(i))));
  }
}

}  // namespace sluice::control
