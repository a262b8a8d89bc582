// SPDX-License-Identifier: Apache-2.0
#include "control/attach/link.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <cerrno>
#include <cstring>

namespace sluice::attach {
namespace {

Error not_running(const std::filesystem::path& socket, const std::string& reason) {
  return {ErrorCode::kDaemonNotRunning,
          fmt::format("sluice-dataplane does not answer on {} ({}): start it", socket.string(), reason)};
}

Result<UniqueFd> connect_to(const std::filesystem::path& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = socket.string();
  if (path.size() >= sizeof address.sun_path) {
    return Error{ErrorCode::kConfiguration,
                 fmt::format("{} is too long for a socket: use a shorter node directory", path)};
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd || ::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    return not_running(socket, std::strerror(errno));
  }
  return fd;
}

enum class Taken : uint8_t { kReply, kNothing, kEnd };

// Takes one reply and the descriptor that came with it. kEnd: the stream ended, or that was nonsense.
Taken take_reply(int socket, board::AttachReply* reply, UniqueFd* fd) {
  iovec part{reply, sizeof *reply};
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = space;
  message.msg_controllen = sizeof space;
  const ssize_t got = ::recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Taken::kNothing;
  for (cmsghdr* c = got > 0 ? CMSG_FIRSTHDR(&message) : nullptr; c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(sizeof(int)))
      continue;
    int received = -1;
    std::memcpy(&received, CMSG_DATA(c), sizeof received);
    fd->reset(received);
  }
  return got == static_cast<ssize_t>(sizeof *reply) ? Taken::kReply : Taken::kEnd;
}

}  // namespace

BoardLink::BoardLink(asio::io_context& io, UniqueFd fd) : socket_(io, fd.release()), changed_(io) {}

asio::awaitable<Result<std::shared_ptr<BoardLink>>> BoardLink::attach(asio::io_context& io,
                                                                      std::filesystem::path socket) {
  Result<UniqueFd> fd = connect_to(socket);
  if (!fd) co_return fd.error();
  std::shared_ptr<BoardLink> link(new BoardLink(io, std::move(*fd)));
  asio::co_spawn(io, link->read_loop(link), asio::detached);
  const board::AttachRequest hello{.kind = board::AttachKind::kHello};
  Result<Reply> reply = co_await link->request(hello, -1);
  if (!reply || reply->status != 0 || !reply->fd) {
    link->close();
    if (!reply) co_return not_running(socket, "no answer");
    if (reply->status == EBUSY) co_return not_running(socket, "another sluice-control is attached");
    co_return not_running(socket, reply->status != 0 ? std::strerror(reply->status) : "no board");
  }
  Result<BoardMap> board = BoardMap::map(reply->fd.get());
  if (!board) {
    link->close();
    co_return board.error();
  }
  link->board_.emplace(std::move(*board));
  co_return link;
}

asio::awaitable<void> BoardLink::read_loop(std::shared_ptr<BoardLink> /*self*/) {
  while (!closed_) {
    asio::error_code error;
    co_await socket_.async_wait(asio::posix::stream_descriptor::wait_read,
                                asio::redirect_error(asio::use_awaitable, error));
    if (error || closed_) break;
    Pending pending;
    const Taken taken = take_reply(socket_.native_handle(), &pending.reply, &pending.fd);
    if (taken == Taken::kNothing) continue;
    if (taken == Taken::kEnd || !awaiting_ || reply_) break;  // an answer that nobody asked for ends it, too
    reply_ = std::move(pending);
    changed_.notify();
  }
  close();
}

asio::awaitable<bool> BoardLink::send(const board::AttachRequest& request, int fd) {
  iovec part{const_cast<board::AttachRequest*>(&request), sizeof request};
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = space;
    message.msg_controllen = sizeof space;
    cmsghdr* c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(c), &fd, sizeof fd);
  }
  for (;;) {
    if (closed_) co_return false;
    if (::sendmsg(socket_.native_handle(), &message, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0) co_return true;
    if (errno == EINTR) continue;
    if (errno != EAGAIN) co_return false;
    asio::error_code error;
    co_await socket_.async_wait(asio::posix::stream_descriptor::wait_write,
                                asio::redirect_error(asio::use_awaitable, error));
    if (error) co_return false;
  }
}

asio::awaitable<Result<BoardLink::Reply>> BoardLink::request(const board::AttachRequest& request, int fd) {
  const std::shared_ptr<BoardLink> self = shared_from_this();
  const Error gone{ErrorCode::kDaemonNotRunning, "sluice-dataplane of this node ended: start it"};
  const uint64_t turn = next_turn_++;
  while (turn_ != turn && !closed_) co_await changed_.wait();
  if (closed_) co_return gone;
  awaiting_ = true;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(kRequestTimeoutMs);
  bool sent = co_await send(request, fd);
  while (sent && !reply_ && !closed_ && std::chrono::steady_clock::now() < deadline) {
    co_await changed_.wait_for(deadline - std::chrono::steady_clock::now());
  }
  std::optional<Pending> answer = std::exchange(reply_, std::nullopt);
  awaiting_ = false;
  ++turn_;
  // Without an answer, or with one to something else, the order of replies would be lost.
  if (!answer || answer->reply.kind != request.kind) close();
  changed_.notify();
  if (!answer || answer->reply.kind != request.kind) co_return gone;
  co_return Reply{
      .status = answer->reply.status, .fd = std::move(answer->fd), .value = answer->reply.board_bytes};
}

void BoardLink::close() {
  if (closed_) return;
  closed_ = true;
  asio::error_code ignored;
  socket_.close(ignored);
  changed_.notify();
}

}  // namespace sluice::attach
