// The dataplane's end of attach.h: makes the board, and opens and closes objects for control.
//
// Main thread only; cold. Every field of a request is checked. A client's end changes nothing: flows
// and objects stay for the next one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "dataplane/base/error.h"
#include "dataplane/base/unique_fd.h"
#include "dataplane/board/attach.h"
#include "dataplane/board/board.h"
#include "dataplane/lane/key_table.h"
#include "dataplane/lane/object_table.h"

namespace sluice::lane {

// The board's memory: a sealed memfd, mapped here.
class BoardMemory {
 public:
  static Result<BoardMemory> create(const board::PortInfo& port);
  board::Board& board() const { return *board_; }
  int fd() const { return fd_.get(); }

 private:
  UniqueFd fd_;
  board::Board* board_ = nullptr;  // mapped for the life of the process
};

// A worker's count of quiet points; see ObjectTable.
using WorkerEpochs = std::vector<std::unique_ptr<std::atomic<uint64_t>>>;

class AttachServer {
 public:
  // Listens on `socket` (made with mode 0600; a stale one is replaced, a live one is an error).
  // `sends_any_memory`: net::Port::sends_any_memory; sources in memory are then mapped.
  static Result<AttachServer> listen(const std::filesystem::path& socket, BoardMemory& memory,
                                     ObjectTable& objects, KeyTable& keys, const WorkerEpochs& epochs,
                                     bool sends_any_memory = false);
  ~AttachServer();
  AttachServer(AttachServer&&) = default;
  AttachServer& operator=(AttachServer&&) = delete;

  // Sets the level of this daemon's log, or only says which it is.
  using LogLevel = std::function<uint32_t(std::optional<uint32_t>)>;
  void when_log_level(LogLevel level) { log_level_ = std::move(level); }

  // Waits up to `timeout_ms` for requests, or for `wake_fd` to become readable, and answers them.
  void serve(int timeout_ms, int wake_fd);

 private:
  AttachServer(std::filesystem::path socket, UniqueFd listener, BoardMemory& memory, ObjectTable& objects,
               KeyTable& keys, const WorkerEpochs& epochs, bool sends_any_memory);
  void accept_client();
  void handle_request();
  // *passed: the descriptor that goes with the reply, if any.
  board::AttachReply answer(const board::AttachRequest& request, std::vector<UniqueFd> fds, int* passed);
  int open_object(const board::AttachRequest& request, UniqueFd fd);
  int close_object(uint32_t session, uint32_t index);
  int take_keys(const board::AttachRequest& request);
  void wait_quiet() const;

  std::filesystem::path socket_;
  UniqueFd listener_;
  UniqueFd client_;
  BoardMemory* memory_;
  uint32_t extent_bytes_max_;   // copied: control can write to the board
  uint64_t written_bytes_ = 0;  // of all open objects' `written`
  ObjectTable* objects_;
  KeyTable* keys_;
  const WorkerEpochs* epochs_;
  bool sends_any_memory_;
  LogLevel log_level_ = [](std::optional<uint32_t>) { return board::kLogLevels - 1; };
};

}  // namespace sluice::lane
