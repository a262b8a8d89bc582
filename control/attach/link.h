// One connection to sluice-dataplane's unix socket: takes the board, carries requests and descriptors.
//
// On the io_context thread. Requests are sent one at a time, in the order in which they were made: replies
// carry no number. A reply and the descriptor that came with it are one thing and belong to one request.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <filesystem>
#include <memory>
#include <optional>

#include "control/async/notify.h"
#include "control/attach/map.h"
#include "dataplane/base/unique_fd.h"
#include "dataplane/board/attach.h"

namespace sluice::attach {

class BoardLink : public std::enable_shared_from_this<BoardLink> {
 public:
  static constexpr uint32_t kRequestTimeoutMs = 10'000;

  // Connects and takes the board. kDaemonNotRunning when nobody answers, or another control is attached.
  static asio::awaitable<Result<std::shared_ptr<BoardLink>>> attach(asio::io_context& io,
                                                                    std::filesystem::path socket);

  struct Reply {
    int status = 0;      // 0 or errno
    UniqueFd fd;         // of kHello and kFetchObject
    uint64_t value = 0;  // of kLogLevel
  };

  BoardMap& board() { return *board_; }
  // `fd` (or -1) is passed along; the caller keeps its own, and `request`, until it is answered: a secret in
  // it is copied nowhere. kDaemonNotRunning when there is no answer.
  asio::awaitable<Result<Reply>> request(const board::AttachRequest& request, int fd);
  bool closed() const { return closed_; }
  void close();

 private:
  BoardLink(asio::io_context& io, UniqueFd fd);
  asio::awaitable<void> read_loop(std::shared_ptr<BoardLink> self);
  asio::awaitable<bool> send(const board::AttachRequest& request, int fd);

  asio::posix::stream_descriptor socket_;
  async::Notify changed_;
  std::optional<BoardMap> board_;
  struct Pending {
    board::AttachReply reply;
    UniqueFd fd;
  };
  std::optional<Pending> reply_;  // to the request that was sent last
  uint64_t next_turn_ = 0;        // of a new request
  uint64_t turn_ = 0;             // whose it is
  bool awaiting_ = false;         // a request was sent and is not answered
  bool closed_ = false;
};

}  // namespace sluice::attach
