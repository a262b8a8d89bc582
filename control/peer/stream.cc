// SPDX-License-Identifier: Apache-2.0
#include "control/peer/stream.h"

#include <netinet/tcp.h>
#include <sys/socket.h>

#include <asio/buffer.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/redirect_error.hpp>
#include <asio/ssl/error.hpp>
#include <asio/use_awaitable.hpp>
#include <asio/write.hpp>

#include "control/peer/connection.h"
#include "dataplane/base/log.h"

namespace sluice::peer {
namespace {

using asio::ip::tcp;
using namespace std::chrono_literals;

constexpr size_t kInputBytes = 16U << 10;  // one TLS record
constexpr uint32_t kLingerMs = 2000;
constexpr auto kRecancelInterval = 10ms;

// A peer that vanished is noticed within about 20 s, whether or not data is on its way.
void set_options(tcp::socket& socket) {
  asio::error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  using asio::detail::socket_option::integer;
  socket.set_option(integer<IPPROTO_TCP, TCP_KEEPIDLE>(10), ignored);
  socket.set_option(integer<IPPROTO_TCP, TCP_KEEPINTVL>(5), ignored);
  socket.set_option(integer<IPPROTO_TCP, TCP_KEEPCNT>(2), ignored);
  socket.set_option(integer<IPPROTO_TCP, TCP_USER_TIMEOUT>(20'000), ignored);
}

std::string reason_of(const asio::error_code& failure) {
  if (failure == asio::error::eof || failure == asio::ssl::error::stream_truncated)
    return "closed by the peer";
  return failure.message();
}

}  // namespace

std::string to_text(const tcp::endpoint& endpoint) {
  const std::string address = endpoint.address().to_string();
  const std::string port = std::to_string(endpoint.port());
  return endpoint.address().is_v6() ? "[" + address + "]:" + port : address + ":" + port;
}

Deadline::Deadline(const asio::any_io_executor& executor, uint32_t timeout_ms,
                   std::function<void()> on_expiry)
    : state_(std::make_shared<State>(executor)) {
  state_->timer.expires_after(std::chrono::milliseconds(timeout_ms));
  // The handler may already be queued when the deadline is destroyed: `over` then stops it.
  state_->timer.async_wait(
      [state = state_, on_expiry = std::move(on_expiry)](const asio::error_code& cancelled) {
        if (cancelled || state->over) return;
        state->expired = true;
        on_expiry();
      });
}

Deadline::~Deadline() {
  state_->over = true;
  state_->timer.cancel();
}

Stream::Stream(tcp::socket socket, std::shared_ptr<asio::ssl::context> context,
               std::shared_ptr<FrameMemory> memory)
    : executor_(socket.get_executor()),
      context_(std::move(context)),
      tls_(std::move(socket), *context_),
      memory_(std::move(memory)),
      input_(kInputBytes),
      changed_(executor_, asio::steady_timer::time_point::max()) {
  asio::error_code ignored;
  remote_ = to_text(tls_.next_layer().remote_endpoint(ignored));
  name_ = remote_;
  set_options(tls_.next_layer());
  set_peer_check(tls_.native_handle(), &check);
}

Stream::~Stream() { clear_queue(); }

bool Stream::left_silently() {
  char byte = 0;
  return ::recv(tls_.lowest_layer().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

asio::awaitable<void> Stream::readable() {
  asio::error_code ignored;
  co_await tls_.next_layer().async_wait(tcp::socket::wait_read,
                                        asio::redirect_error(asio::use_awaitable, ignored));
}

asio::awaitable<void> Stream::wait_until(std::chrono::steady_clock::time_point then) {
  asio::error_code ignored;
  if (closed_) co_return;
  changed_.expires_at(then);
  co_await changed_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  changed_.expires_at(asio::steady_timer::time_point::max());
}

void Stream::show(std::shared_ptr<asio::ssl::context> context) {
  SSL_set_SSL_CTX(tls_.native_handle(), context->native_handle());
  context_ = std::move(context);
}

asio::awaitable<asio::error_code> Stream::handshake(asio::ssl::stream_base::handshake_type role) {
  asio::error_code failure;
  co_await tls_.async_handshake(role, asio::redirect_error(asio::use_awaitable, failure));
  co_return failure;
}

Error Stream::unreachable(const std::string& reason) const {
  return {ErrorCode::kPeerUnreachable, "the control connection with " + name_ + " ended: " + reason};
}

asio::awaitable<Result<std::string>> Stream::read_frame(asio::error_code* failure) {
  if (reading_) co_return Error{ErrorCode::kInternal, "two receivers on one control connection"};
  std::string payload;
  lease_.reset();  // whoever reads on has done with the frame before
  while (!closed_ && !read_ended_) {
    decoder_.set_frame_bytes_max(frame_bytes_max_);
    const FrameDecoder::Next next = decoder_.next(&payload);
    if (next == FrameDecoder::Next::kFrame) co_return payload;
    if (next == FrameDecoder::Next::kTooLong)
      co_return fail("it sent a message of more than " + std::to_string(frame_bytes_max_) +
                     " bytes, which it may not now");
    asio::error_code error;
    if (decoder_.next_bytes() > FrameMemory::kSmallFrameBytes && !lease_) {
      lease_ = FrameMemory::lease(memory_, peer_, decoder_.next_bytes(), [this, alive = weak_from_this()] {
        if (!alive.expired()) changed_.cancel();
      });
      while (lease_ && !lease_->granted())
        co_await changed_.async_wait(asio::redirect_error(asio::use_awaitable, error));
      continue;
    }
    reading_ = true;
    const size_t bytes =
        co_await tls_.async_read_some(asio::buffer(input_), asio::redirect_error(asio::use_awaitable, error));
    reading_ = false;
    changed_.cancel();
    decoder_.feed({input_.data(), bytes});
    if (error) {
      if (failure != nullptr) *failure = error;
      read_ended_ = unreachable(reason_of(error));
      write_ended_ = read_ended_;
    }
  }
  if (closed_) co_return unreachable("closed here");
  co_return *read_ended_;
}

bool Stream::export_secret(std::string_view label, std::span<const uint8_t> context, std::span<uint8_t> out) {
  return !closed_ && SSL_export_keying_material(tls_.native_handle(), out.data(), out.size(), label.data(),
                                                label.size(), context.data(), context.size(), 1) == 1;
}

uint64_t Stream::rtt_ns() {
  tcp_info info{};
  socklen_t bytes = sizeof info;
  if (::getsockopt(tls_.lowest_layer().native_handle(), IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0) return 0;
  return uint64_t{info.tcpi_rtt} * 1000;
}

Status Stream::send_frame(std::string frame) {
  if (closed_) return unreachable("closed here");
  if (write_ended_) return *write_ended_;
  if (queued_bytes_ + frame.size() > kQueuedBytesMax || !memory_->may_queue(queued_bytes_, frame.size()))
    return Error{ErrorCode::kResources, name_ + " does not take its messages: " +
                                            std::to_string((queued_bytes_ + frame.size()) >> 20) +
                                            " MiB would wait for it"};
  queued_bytes_ += frame.size();
  memory_->queued(frame.size());
  queue_.push_back(std::move(frame));
  if (!writing_) {
    writing_ = true;
    asio::co_spawn(executor_, write_queue(shared_from_this()), asio::detached);
  }
  return {};
}

asio::awaitable<void> Stream::write_queue(std::shared_ptr<Stream> self) {
  while (!self->queue_.empty() && !self->closed_ && !self->write_ended_) {
    const std::string frame = std::move(self->queue_.front());
    self->queue_.pop_front();
    asio::error_code error;
    co_await asio::async_write(self->tls_, asio::buffer(frame),
                               asio::redirect_error(asio::use_awaitable, error));
    self->queued_bytes_ -= frame.size();
    self->memory_->left(frame.size());
    // The reading side goes on: the peer's last words may still be on their way.
    if (error && !self->write_ended_) self->write_ended_ = self->unreachable(reason_of(error));
  }
  self->clear_queue();
  self->writing_ = false;
  self->changed_.cancel();
}

void Stream::clear_queue() {
  queue_.clear();
  memory_->left(std::exchange(queued_bytes_, 0));
}

asio::awaitable<void> Stream::flush() {
  while (writing_) {
    asio::error_code woken;
    co_await changed_.async_wait(asio::redirect_error(asio::use_awaitable, woken));
  }
}

Error Stream::fail(const std::string& reason) {
  Error error = unreachable(reason);
  log::of(log::kPeer)->warn("{}", error.message);
  close();
  return error;
}

void Stream::close() {
  if (closed_) return;
  closed_ = true;
  lease_.reset();
  changed_.cancel();
  asio::error_code ignored;
  tls_.next_layer().cancel(ignored);
  asio::co_spawn(executor_, linger(shared_from_this()), asio::detached);
}

void Stream::abort() {
  closed_ = true;
  lease_.reset();
  changed_.cancel();
  asio::error_code ignored;
  tls_.next_layer().close(ignored);
}

// Closing a socket with unread input resets the connection, and a reset overtakes what was written before:
// the peer would never see our last message. So half-close, and read until the peer closes, for a while.
asio::awaitable<void> Stream::linger(std::shared_ptr<Stream> self) {
  tcp::socket& socket = self->tls_.next_layer();
  const Deadline deadline(self->executor_, kLingerMs, [self] { self->abort(); });
  asio::error_code ignored;
  while (self->reading_ || self->writing_) {
    // An operation that was between two steps when close() cancelled has begun another one since.
    socket.cancel(ignored);
    asio::steady_timer again(self->executor_, kRecancelInterval);
    co_await again.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
  socket.shutdown(tcp::socket::shutdown_send, ignored);
  for (asio::error_code error; !error;)
    co_await socket.async_read_some(asio::buffer(self->input_),
                                    asio::redirect_error(asio::use_awaitable, error));
  socket.close(ignored);
}

}  // namespace sluice::peer
