// Control's side of the board: attaching, flows, commands, events, and the tick that drives sessions.
//
// On the io_context thread. While the dataplane is absent it tries again every 200 ms. When the
// dataplane ends, every user is told once (on_board_lost) and forgotten: it calls nothing here again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "control/board/flow_table.h"
#include "control/board/link.h"
#include "dataplane/base/config/config.h"

namespace sluice::control {

// A session, as the board client sees it.
class BoardUser {
 public:
  virtual void on_event(const board::Event& event) = 0;  // of a flow that it owns
  virtual void on_tick(uint64_t now_ns) = 0;             // after the events, about once a millisecond
  virtual void on_board_lost() = 0;
  // Once, at the first attach after claim(): whether the claimed flows and the session slot are there.
  virtual void on_claimed(bool adopted) = 0;

 protected:
  ~BoardUser() = default;
};

// The flows of a session that a former control opened.
struct Claim {
  uint64_t board_generation = 0;
  uint32_t session = 0;
  std::vector<FlowGrant> flows;
  std::vector<uint64_t> flow_ids;
  std::vector<uint32_t> credit;  // as granted to the peer; zeros at a source
};

uint64_t monotonic_ns();

class BoardClient : public std::enable_shared_from_this<BoardClient> {
 public:
  BoardClient(asio::io_context& io, const config::Node& node);

  // Before start: this user goes on with these flows, if they are still there. Others are closed.
  void claim(BoardUser* user, Claim claim);
  void start();
  void stop();  // detaches; users are told

  bool attached() const { return attached_; }
  const board::PortInfo& port() const { return port_; }  // of the last attach; zero before
  uint64_t counter(board::Counter counter) const;        // all workers together
  FlowTable& table() { return table_; }
  Notify& changed() { return changed_; }  // attached, or something was released

  // A session slot, and ticks from now on. kDaemonNotRunning, kResources.
  Result<uint32_t> open_session(BoardUser* user);
  // Closes the slot's objects at the dataplane and frees it: at once, or in the background when a flow of
  // it cannot end yet.
  asio::awaitable<void> close_session(uint32_t session, BoardUser* user);
  asio::awaitable<Status> open_object(uint32_t session, uint32_t object, uint32_t flags, uint64_t size,
                                      uint32_t extent_bytes, int fd, bool may_exist = false);
  asio::awaitable<void> close_object(uint32_t session, uint32_t object);
  asio::awaitable<Result<UniqueFd>> fetch_object(uint32_t session, uint32_t object);
  uint64_t generation() const { return generation_; }
  // Hands every event that waits to its user, now.
  void poll_now();
  void forget(BoardUser* user);  // no calls to it any more; its slots stay as they are

  board::FlowSlot& flow(uint32_t slot) { return (*link_).board()->flows[slot]; }
  void open_flow(uint32_t slot, const board::FlowConfig& config, BoardUser* user);
  void close_flow(uint32_t slot);
  // Frees the slot: at once when its flow is closed or was never opened, else when the worker says so.
  void release_flow(uint32_t slot);
  bool flow_closed(uint32_t slot) const { return !flows_[slot].open; }
  // Never fails: a full ring is tried again at the next tick.
  void command(const board::Command& command);
  size_t backlog() const;  // commands that wait for room

 private:
  struct Flow {
    BoardUser* user = nullptr;
    bool open = false;      // kOpenFlow was given, kFlowClosed not yet seen
    bool released = false;  // nobody waits for it any more
  };

  asio::awaitable<void> run(std::shared_ptr<BoardClient> self);
  asio::awaitable<void> poll();
  asio::awaitable<void> close_leftovers();
  void take_claims();
  asio::awaitable<bool> try_close_session(uint32_t session);  // true: there is nothing left to do
  asio::awaitable<void> close_session_later(std::shared_ptr<BoardClient> self, uint32_t session);
  void lost();
  void tick(uint64_t now_ns);
  void drain_events(const std::function<void(const board::Event&)>& handle);
  void handle(const board::Event& event);
  void push_commands();
  asio::awaitable<void> pause(std::chrono::nanoseconds duration);

  asio::io_context& io_;
  std::filesystem::path socket_;
  std::shared_ptr<BoardLink> link_;
  Notify changed_;
  Notify wake_;
  FlowTable table_;
  board::PortInfo port_{};
  std::vector<BoardUser*> users_;
  std::vector<std::pair<BoardUser*, Claim>> claims_;
  std::array<Flow, board::kFlowsMax> flows_;
  std::array<std::deque<board::Command>, board::kWorkersMax> backlog_;
  uint64_t generation_ = 0;
  bool attached_ = false;
  bool stopped_ = false;
};

}  // namespace sluice::control
