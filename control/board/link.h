// One connection to sluice-dataplane's unix socket: takes the board, carries requests and descriptors.
//
// On the io_context thread. Requests are sent one at a time, in order: replies carry no number.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <filesystem>
#include <memory>
#include <optional>

#include "control/async/notify.h"
#include "control/board/map.h"
#include "dataplane/base/unique_fd.h"
#include "dataplane/board/attach.h"

namespace sluice::control {

class BoardLink : public std::enable_shared_from_this<BoardLink> {
 public:
  static constexpr uint32_t kRequestTimeoutMs = 10'000;

  // Connects and takes the board. kDaemonNotRunning when nobody answers, or another control is attached.
  static asio::awaitable<Result<std::shared_ptr<BoardLink>>> attach(asio::io_context& io,
                                                                    std::filesystem::path socket);

  BoardMap& board() { return *board_; }
  // The reply's status (0 or errno). `fd` (or -1) is passed along; the caller keeps its own.
  asio::awaitable<Result<int>> request(board::AttachRequest request, int fd);
  // As request(kFetchObject): the descriptor that the dataplane has of an open object.
  asio::awaitable<Result<UniqueFd>> fetch_object(uint32_t session, uint32_t object);
  bool closed() const { return closed_; }
  asio::awaitable<void> wait_closed();
  void close();

 private:
  BoardLink(asio::io_context& io, UniqueFd fd);
  asio::awaitable<void> read_loop(std::shared_ptr<BoardLink> self);
  asio::awaitable<bool> send(const board::AttachRequest& request, int fd);

  asio::posix::stream_descriptor socket_;
  Notify changed_;
  std::optional<BoardMap> board_;
  UniqueFd received_fd_;
  std::optional<board::AttachReply> reply_;
  bool busy_ = false;
  bool closed_ = false;
};

}  // namespace sluice::control
