// One TLS stream of frames: what Connection, connect() and the listener share.
//
// Runs on the io_context's one thread. Lives in a shared_ptr: each pending operation holds it, so that its
// owner may go away at any time. One reader at a time; any number of sends, written in order.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/ssl/stream.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "control/peer/frame_memory.h"
#include "control/peer/framing.h"
#include "control/peer/tls.h"
#include "dataplane/base/error.h"

namespace sluice::peer {

inline constexpr size_t kQueuedBytesMax = 64U << 20;

// "10.0.0.1:7400", "[fd77::1]:7400".
std::string to_text(const asio::ip::tcp::endpoint& endpoint);

// Calls `on_expiry` once `timeout_ms` have passed, unless it was destroyed before.
class Deadline {
 public:
  Deadline(const asio::any_io_executor& executor, uint32_t timeout_ms, std::function<void()> on_expiry);
  ~Deadline();
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;
  bool expired() const { return state_->expired; }

 private:
  struct State {
    explicit State(const asio::any_io_executor& executor) : timer(executor) {}
    asio::steady_timer timer;
    bool over = false;
    bool expired = false;
  };
  std::shared_ptr<State> state_;
};

// A caller's place among the listener's; given up with the stream.
class Seat {
 public:
  virtual ~Seat() = default;
  virtual void set_busy(bool busy) = 0;  // it belongs to a session: it stays while others come
};

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  // It takes no frame before set_frame_bytes_max().
  Stream(asio::ip::tcp::socket socket, std::shared_ptr<asio::ssl::context> context,
         std::shared_ptr<FrameMemory> memory);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // For the handshake; kept for messages afterwards.
  PeerCheck check;
  std::string own_fingerprint;  // of the key that this node shows
  std::unique_ptr<Seat> seat;   // of an accepted one; goes after the socket, which is declared below it
  // Who it is: errors name it so, e.g. "beta at 10.0.0.1:7400".
  void set_peer(const std::string& peer) {
    peer_ = peer;
    name_ = peer + " at " + remote_;
  }
  // How long a frame may be from now on.
  void set_frame_bytes_max(uint32_t bytes) { frame_bytes_max_ = bytes; }
  const std::string& name() const { return name_; }
  const std::string& remote() const { return remote_; }
  const asio::any_io_executor& executor() const { return executor_; }

  // The caller holds a shared_ptr until these are done.
  asio::awaitable<void> readable();
  // It closed without a word, as who only looks whether a port is open.
  bool left_silently();
  // Before the handshake: until then, or until it is closed or aborted.
  asio::awaitable<void> wait_until(std::chrono::steady_clock::time_point then);
  // Before the handshake: shows what is in this one instead.
  void show(std::shared_ptr<asio::ssl::context> context);
  asio::awaitable<asio::error_code> handshake(asio::ssl::stream_base::handshake_type role);
  // `failure`, if wanted, is set to the socket's or TLS's error when that ended the stream.
  asio::awaitable<Result<std::string>> read_frame(asio::error_code* failure = nullptr);
  asio::awaitable<void> flush();

  // As Connection has them.
  uint64_t rtt_ns();
  bool export_secret(std::string_view label, std::span<const uint8_t> context, std::span<uint8_t> out);
  // Queues a frame (length included).
  Status send_frame(std::string frame);
  // Ends the stream for a reason found above it, e.g. a message that does not parse.
  Error fail(const std::string& reason);
  // What was written still reaches the peer; what waits in the queue does not.
  void close();
  // Closes the socket at once.
  void abort();

 private:
  using Tls = asio::ssl::stream<asio::ip::tcp::socket>;

  Error unreachable(const std::string& reason) const;
  void clear_queue();
  static asio::awaitable<void> write_queue(std::shared_ptr<Stream> self);
  static asio::awaitable<void> linger(std::shared_ptr<Stream> self);

  asio::any_io_executor executor_;
  std::shared_ptr<asio::ssl::context> context_;
  Tls tls_;
  std::string remote_;
  std::string name_;
  std::string peer_;
  const std::shared_ptr<FrameMemory> memory_;

  uint32_t frame_bytes_max_ = 0;
  FrameDecoder decoder_{0};
  std::unique_ptr<FrameMemory::Lease> lease_;  // of the frame under way, or just read, if it is big
  std::vector<uint8_t> input_;
  bool reading_ = false;

  std::deque<std::string> queue_;
  size_t queued_bytes_ = 0;  // in queue_ and in the write under way
  bool writing_ = false;
  // Expires for wait_until() alone; cancelled to wake those who wait for reading_, writing_ or lease_.
  asio::steady_timer changed_;

  bool closed_ = false;
  std::optional<Error> read_ended_;
  std::optional<Error> write_ended_;
};

}  // namespace sluice::peer
