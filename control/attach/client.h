// Control's way to the dataplane: attaches, drives the board, and finds it again when it was gone.
//
// On the io_context thread. While the dataplane is absent it tries again every 200 ms. Users hear of each
// attach and of each end of it; what can be done with a board stands in AttachedBoard, which exists only
// while there is one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "control/async/clock.h"
#include "control/async/turns.h"
#include "control/attach/attached.h"
#include "dataplane/base/config/config.h"

namespace sluice::attach {

// The flows of a transfer that a former control opened.
struct Claim {
  uint64_t board_generation = 0;
  SessionSlotId session;
  std::vector<board::FlowGrant> flows;
  std::vector<uint64_t> flow_ids;
  std::vector<uint32_t> credit_extents;  // as granted to the peer; zeros at a source
};

class BoardClient : public std::enable_shared_from_this<BoardClient> {
 public:
  BoardClient(asio::io_context& io, const config::Node& node, std::shared_ptr<async::TurnMeter> turns);

  void start();
  void stop();  // detaches; users are told

  // Told of attaches from now on, and at once if there is a board.
  void join(board::BoardUser* user);
  void leave(board::BoardUser* user);
  // This user goes on with these flows, if they are still there at the next attach. Others are closed then.
  void claim(board::BoardUser* user, Claim claim);
  void drop_claim(board::BoardUser* user);
  // Ticks while it has a session slot.
  void start_ticking(board::BoardUser* user);
  void stop_ticking(board::BoardUser* user);
  // Somebody is about to wait for an answer of a worker: for a while the board is looked at more often.
  void expect_answers();
  // Closes the slot's objects at the dataplane and frees it: at once, or in the background when a flow of it
  // cannot end yet.
  asio::awaitable<void> close_session(std::shared_ptr<AttachedBoard> board, SessionSlotId session);

  // Nothing while there is no dataplane. Users may hear a little later that it has gone.
  std::shared_ptr<AttachedBoard> attached() const {
    return attached_ && !attached_->lost() ? attached_ : nullptr;
  }
  const board::PortInfo& last_port() const { return last_port_; }  // of the last attach; zero before
  const std::string& last_crc_variant() const { return last_crc_variant_; }
  // Calls `then` in a turn in which no event of the board waits any more.
  void when_drained(std::function<void()> then);

 private:
  asio::awaitable<void> run(std::shared_ptr<BoardClient> self);
  asio::awaitable<void> poll();
  asio::awaitable<void> close_leftovers(std::shared_ptr<AttachedBoard> board);
  asio::awaitable<void> close_session_later(std::shared_ptr<BoardClient> self,
                                            std::shared_ptr<AttachedBoard> board, SessionSlotId session);
  void take_claims(AttachedBoard& board);
  void lost();
  bool turn(uint64_t now_ns);  // true: events are left

  asio::io_context& io_;
  const std::filesystem::path socket_;
  const std::shared_ptr<async::TurnMeter> turns_;
  std::shared_ptr<AttachedBoard> attached_;
  bool cleared_ = false;  // of what a former control left: sessions that begin may take slots
  board::PortInfo last_port_{};
  std::string last_crc_variant_;
  uint64_t last_generation_ = 0;
  uint64_t ticked_ns_ = 0;
  uint64_t quick_until_ns_ = 0;
  async::Notify wake_;
  std::vector<board::BoardUser*> users_;
  std::vector<board::BoardUser*> ticking_;
  std::vector<std::pair<board::BoardUser*, Claim>> claims_;
  std::vector<std::function<void()>> when_drained_;
  bool stopped_ = false;
};

}  // namespace sluice::attach
