// A socket and a board as sluice-dataplane has them; behind them are a few lines that answer as a test wants.
//
// One thread, and nothing waits for time to pass: the bound in run() only ends a hanging test.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/redirect_error.hpp>
#include <asio/use_awaitable.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "dataplane/base/unique_fd.h"
#include "dataplane/board/attach.h"
#include "dataplane/board/board.h"

namespace sluice::attach {

// Takes one connection and answers what it is asked.
class FakeDataplane {
 public:
  explicit FakeDataplane(const std::filesystem::path& path)
      : listening_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)),
        memfd_(::memfd_create("board-test", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path.c_str());
    EXPECT_EQ(::bind(listening_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listening_.get(), 1), 0);
    EXPECT_EQ(::ftruncate(memfd_.get(), sizeof(board::Board)), 0);
    EXPECT_EQ(::fcntl(memfd_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
    void* const memory =
        ::mmap(nullptr, sizeof(board::Board), PROT_READ | PROT_WRITE, MAP_SHARED, memfd_.get(), 0);
    board_ = static_cast<board::Board*>(memory);
    board_->magic = board::kMagic;
    board_->version = board::kVersion;
    board_->board_bytes = sizeof(board::Board);
    board_->generation = 77;
    board_->port.workers = 2;
    board_->port.extent_bytes_max = 1U << 20;
    board_->port.rx_extents = board_->port.tx_extents = 32;
    board_->port.udp_port_base = 47000;
    std::memcpy(board_->crc_variant, "library", sizeof "library");
  }
  ~FakeDataplane() { ::munmap(board_, sizeof(board::Board)); }

  board::Board& board() { return *board_; }
  void end() {
    if (connection_) connection_->close();
    listening_.reset();
  }

  // The request that waits is answered as others are.
  void answer_held() {
    hold_at.reset();
    answer(*std::exchange(held, std::nullopt), status, -1);
  }

  asio::awaitable<void> serve(asio::io_context& io) {
    // The client has connected, or will have when it waits for its first answer.
    asio::posix::stream_descriptor listening(io, ::dup(listening_.get()));
    co_await listening.async_wait(asio::posix::stream_descriptor::wait_read, asio::use_awaitable);
    connection_.emplace(io, ::accept4(listening_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    for (;;) {
      asio::error_code error;
      co_await connection_->async_wait(asio::posix::stream_descriptor::wait_read,
                                       asio::redirect_error(asio::use_awaitable, error));
      board::AttachRequest request;
      if (error || ::recv(connection_->native_handle(), &request, sizeof request, 0) != sizeof request)
        co_return;
      if (request.kind == board::AttachKind::kHello) {
        answer(request.kind, 0, memfd_.get());
        continue;
      }
      requests.push_back(request);
      if (request.kind == end_at) co_return end();
      if (request.kind == hold_at) {
        held = request.kind;  // the next is asked when this one is answered
        continue;
      }
      const bool fetches = request.kind == board::AttachKind::kFetchObject;
      const UniqueFd own = fetches && fetched ? fetched(request) : UniqueFd();
      answer(request.kind, fetches && fetched && !own ? ENOENT : status,
             own                              ? own.get()
             : fetches && with_fd && !fetched ? memfd_.get()
                                              : -1);
    }
  }

  int status = 0;  // of the answers to come
  uint64_t value = 0;
  bool with_fd = true;
  std::function<UniqueFd(const board::AttachRequest&)> fetched;  // what is open; nothing: it is not
  std::optional<board::AttachKind> end_at;                       // ends instead of answering
  std::optional<board::AttachKind> hold_at;                      // is not answered before answer_held()
  std::optional<board::AttachKind> held;                         // waits for that
  std::vector<board::AttachRequest> requests;

 private:
  void answer(board::AttachKind kind, int its_status, int fd) {
    board::AttachReply reply{.kind = kind, .status = its_status, .board_bytes = value};
    iovec part{&reply, sizeof reply};
    alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (fd >= 0) {
      message.msg_control = space;
      message.msg_controllen = sizeof space;
      cmsghdr* const c = CMSG_FIRSTHDR(&message);
      c->cmsg_level = SOL_SOCKET;
      c->cmsg_type = SCM_RIGHTS;
      c->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(c), &fd, sizeof fd);
    }
    EXPECT_GT(::sendmsg(connection_->native_handle(), &message, MSG_NOSIGNAL), 0);
  }

  UniqueFd listening_;
  const UniqueFd memfd_;
  board::Board* board_ = nullptr;
  std::optional<asio::posix::stream_descriptor> connection_;
};

// A folder for the socket, and a loop in which both sides run.
class AttachFixture : public testing::Test {
 protected:
  ~AttachFixture() override { std::filesystem::remove_all(folder_); }

  static std::filesystem::path make_folder() {
    std::string name = std::filesystem::temp_directory_path() / "sluice-attached-XXXXXX";
    return ::mkdtemp(name.data());
  }
  void until(const std::function<bool()>& done) {
    io_.restart();
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(120);
    while (!done() && std::chrono::steady_clock::now() < deadline) io_.run_one_for(std::chrono::seconds(1));
    ASSERT_TRUE(done()) << "it hangs";
  }

  const std::filesystem::path folder_ = make_folder();
  asio::io_context io_;
};

}  // namespace sluice::attach
