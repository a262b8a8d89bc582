// SPDX-License-Identifier: Apache-2.0
#include "control/peer/stream_connection.h"

#include "control/peer/stream.h"

namespace sluice::peer {
namespace {

// Coroutines take the stream by value: the Connection may be destroyed before they run, or while they wait.
asio::awaitable<Result<PeerMessage>> receive_from(std::shared_ptr<Stream> stream) {
  const auto frame = co_await stream->read_frame();
  if (!frame) co_return frame.error();
  PeerMessage message;
  if (!message.ParseFromString(*frame)) co_return stream->fail("it sent a message that cannot be read");
  co_return message;
}

uint32_t bytes_max_of(Stage stage) {
  switch (stage) {
    case Stage::kHello:
      return kHelloBytesMax;
    case Stage::kGreeting:
      return kGreetingBytesMax;
    case Stage::kSession:
    case Stage::kOver:
      return kMessageBytesMax;
  }
  return 0;
}

asio::awaitable<void> flush_of(std::shared_ptr<Stream> stream) { co_await stream->flush(); }

class StreamConnection final : public Connection {
 public:
  StreamConnection(std::shared_ptr<Stream> stream, identity::Peer peer)
      : stream_(std::move(stream)), peer_(std::move(peer)) {}
  ~StreamConnection() override { stream_->close(); }

  asio::awaitable<Result<PeerMessage>> receive() override { return receive_from(stream_); }
  asio::awaitable<void> flush() override { return flush_of(stream_); }
  Status send(const PeerMessage& message) override {
    const std::string payload = message.SerializeAsString();
    if (payload.size() > kMessageBytesMax)
      return Error{ErrorCode::kInternal,
                   "a message of more than 16 MiB was to be sent to " + stream_->name()};
    return stream_->send_frame(encode_frame(payload));
  }
  void set_stage(Stage stage) override {
    if (stream_->seat) stream_->seat->set_busy(stage == Stage::kGreeting || stage == Stage::kSession);
    stream_->set_frame_bytes_max(bytes_max_of(stage));
  }
  void close() override { stream_->close(); }
  bool export_secret(std::string_view label, std::span<const uint8_t> context,
                     std::span<uint8_t> out) const override {
    return stream_->export_secret(label, context, out);
  }
  const identity::Peer& peer() const override { return peer_; }
  const std::string& own_fingerprint() const override { return stream_->own_fingerprint; }
  std::string remote_address() const override { return stream_->remote(); }
  uint64_t rtt_ns() const override { return stream_->rtt_ns(); }

 private:
  std::shared_ptr<Stream> stream_;
  identity::Peer peer_;
};

}  // namespace

std::unique_ptr<Connection> make_connection(std::shared_ptr<Stream> stream, identity::Peer peer) {
  auto connection = std::make_unique<StreamConnection>(std::move(stream), std::move(peer));
  connection->set_stage(Stage::kHello);
  return connection;
}

}  // namespace sluice::peer
