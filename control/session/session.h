// One session at one node: the control stream, the handshake, the flows, and the end that moves data.
//
// On the io_context thread. `run` is the session's life; everything else happens inside it or is told
// to it by the board client. Role (source, destination) and initiative are independent. Whatever
// happens, wind_down gives back what the session took, and the other node learns why.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/peer/connection.h"
#include "control/proto/api.pb.h"
#include "control/recovery/extent_map.h"
#include "control/session/context.h"
#include "control/session/data_end.h"
#include "control/session/negotiation.h"
#include "control/session/progress.h"
#include "control/session/source_item.h"

namespace sluice::control {

// What an operator of this node asked for.
struct SessionRequest {
  bool send = true;
  identity::Peer peer;
  Options options;
  std::vector<std::string> source_paths;
  std::vector<SourceItem> sources;  // send: opened and checked already
  std::string destination;
};

// One flow of this session.
struct Lane {
  FlowGrant grant;
  uint64_t flow_id = 0;
  uint32_t credit = 0;
  bool opened = false;  // kOpenFlow was given
  bool answered = false;
  uint64_t open_status = 0;
};

class Session final : public BoardUser, public std::enable_shared_from_this<Session> {
 public:
  using OnEnd = std::function<void(const std::shared_ptr<Session>&)>;

  Session(std::shared_ptr<Context> context, std::string id, SessionRequest request);        // initiator
  Session(std::shared_ptr<Context> context, std::unique_ptr<peer::Connection> connection);  // other node
  ~Session();

  // Starts `run`; `on_end` is called once, last.
  void start(OnEnd on_end);
  void cancel();
  // Ends the session with a reason, unless it has one already.
  void fail(Error error);
  api::Session snapshot() const;
  const std::string& id() const { return id_; }
  bool ended() const { return ended_; }

  // ---- for the data ends ----
  const std::shared_ptr<Context>& context() const { return context_; }
  const Agreement& agreement() const { return agreement_; }
  uint32_t slot() const { return *slot_; }
  const std::vector<Lane>& lanes() const { return lanes_; }
  board::FlowSlot& flow(uint32_t lane) { return context_->board->flow(lanes_[lane].grant.slot); }
  void command(board::CommandKind kind, uint32_t lane, uint32_t object, recovery::Range range,
               uint32_t tag = 0);
  bool failed() const { return error_.has_value(); }
  bool board_lost() const { return board_lost_; }
  Notify& changed() { return changed_; }
  void send(const peer::PeerMessage& message);
  bool stream_open() const { return reading_; }
  // Runs a task of this session; wind_down waits for it. The task looks at failed() after every wait.
  void spawn(asio::awaitable<void> task);
  std::string log_name() const;

  // ---- BoardUser ----
  void on_event(const board::Event& event) override;
  void on_tick(uint64_t now_ns) override;
  void on_board_lost() override;

 private:
  asio::awaitable<void> run(std::shared_ptr<Session> self);
  asio::awaitable<Status> initiate();
  asio::awaitable<Status> serve();
  asio::awaitable<Status> run_source(std::vector<SourceItem> items);
  asio::awaitable<Status> run_destination();
  asio::awaitable<Status> begin_and_run();
  asio::awaitable<void> wind_down();
  asio::awaitable<void> send_failure();
  asio::awaitable<void> close_lanes();

  void start_stream(std::unique_ptr<peer::Connection> connection);
  asio::awaitable<void> read_loop(std::shared_ptr<Session> self);
  asio::awaitable<void> heartbeat_loop(std::shared_ptr<Session> self);
  void handle(const peer::PeerMessage& message);
  asio::awaitable<Result<peer::PeerMessage>> expect(peer::PeerMessage::BodyCase body, const char* waiting_for,
                                                    bool patient);
  void send_hello();
  Status take_agreement(const peer::Specification& specification, const peer::SpecificationSet& set,
                        bool initiator);

  // resources (session_resources.cc)
  Status take_slot();
  asio::awaitable<Status> take_lanes(uint32_t lanes, bool may_wait);
  asio::awaitable<Status> take_budget(board::Direction direction);
  bool try_budget(board::Direction direction);
  std::vector<uint16_t> local_ports() const;
  void shrink_lanes(uint32_t lanes);
  asio::awaitable<Status> open_lanes();
  board::FlowConfig flow_config(const Lane& lane, uint16_t peer_port) const;

  Abilities abilities() const;
  void read_figures();
  void watch(uint64_t now_ns);
  void check_stall(uint64_t now_ns);
  uint64_t bytes_done() const;

  std::shared_ptr<Context> context_;
  Notify changed_;
  std::string id_;
  std::optional<SessionRequest> request_;  // initiator only
  std::string peer_name_;
  std::unique_ptr<peer::Connection> connection_;
  std::deque<peer::PeerMessage> inbox_;
  std::unique_ptr<DataEnd> end_;
  bool is_source_ = false;
  OnEnd on_end_;

  std::optional<uint32_t> slot_;
  std::vector<Lane> lanes_;
  Agreement agreement_;

  api::Session::State state_ = api::Session::NEGOTIATING;
  std::string waiting_for_;
  std::optional<Error> error_;
  bool error_is_peers_ = false;
  bool board_lost_ = false;
  bool data_running_ = false;
  bool reading_ = false;
  bool winding_down_ = false;
  bool ended_ = false;
  uint32_t tasks_ = 0;

  int64_t started_unix_ns_ = 0;
  uint64_t started_ns_ = 0;
  uint64_t ended_ns_ = 0;
  uint64_t data_started_ns_ = 0;
  uint64_t data_ended_ns_ = 0;
  uint64_t heard_ns_ = 0;
  FlowFigures figures_;
  RateMeter meter_;
  uint64_t watched_ns_ = 0;
  uint64_t progress_mark_ = 0;
  uint64_t progress_ns_ = 0;
};

}  // namespace sluice::control
