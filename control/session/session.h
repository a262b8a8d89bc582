// One session at one node: what an operator asked for, until it is done, given up or cancelled.
//
// On the io_context thread. `run` is the session's life. It is made of attempts: flows are opened, data
// moves, and either everything is done or something is in the way; then the session rests, waits or ends
// (session_rest.cc), and tries again with what the journal and the data end know. Within an attempt flows
// go on when the control stream is lost; it is renewed (session_stream.cc). Role (source, destination) and
// initiative are independent; only the initiator connects. Whatever happens, an attempt gives back what it
// took, and the other node learns why.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/board/figures.h"
#include "control/peer/connection.h"
#include "control/proto/api.pb.h"
#include "control/recovery/lane_command.h"
#include "control/session/context.h"
#include "control/session/data_end.h"
#include "control/session/negotiation.h"
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

// A connection of the other node, with the hello that it began with.
struct Incoming {
  std::unique_ptr<peer::Connection> connection;
  peer::Hello hello;
};

// What the journal knows of a session.
struct SavedSession {
  journal::SessionRecord record;
  std::vector<SavedFile> files;
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

  Session(std::shared_ptr<Context> context, std::string id, SessionRequest request);  // initiator
  Session(std::shared_ptr<Context> context, std::string id, Incoming incoming);       // other node
  ~Session();

  // From the journal. The peer must still be known for an initiator.
  static std::shared_ptr<Session> restore(std::shared_ptr<Context> context, SavedSession saved,
                                          std::optional<identity::Peer> peer);

  // Starts `run`; `on_end` is called once, last.
  void start(OnEnd on_end);
  void cancel();
  Status pause();
  Status go_on();
  // This control stops; flows, files and journal stay as they are for the next one.
  void detach();
  // A new connection of the other node for this session.
  void offer(Incoming incoming);
  // Ends the attempt with a reason, unless it has one already.
  void fail(Error error);
  api::Session snapshot() const;
  const std::string& id() const { return id_; }
  const std::string& peer_name() const { return peer_name_; }
  bool initiator() const { return initiator_; }
  bool ended() const { return ended_; }
  std::optional<identity::Peer> unaware_peer() const;  // ended, and it may still wait for this session
  const std::optional<Error>& error() const { return error_; }

  // ---- for the data ends ----
  const std::shared_ptr<Context>& context() const { return context_; }
  const Agreement& agreement() const { return agreement_; }
  uint32_t slot() const { return *slot_; }
  const std::vector<Lane>& lanes() const { return lanes_; }
  board::FlowSlot& flow(uint32_t lane) { return context_->board->flow(lanes_[lane].grant.slot); }
  void command(const recovery::LaneCommand& command);
  bool failed() const { return attempt_error_.has_value(); }
  bool board_lost() const { return board_lost_; }
  bool detached() const { return detached_; }
  Notify& changed() { return changed_; }
  void send(const peer::PeerMessage& message);  // dropped while there is no stream: states are repeated
  bool stream_open() const { return reading_; }
  // Runs a task of this session; an attempt's end waits for it. The task looks at failed() after every wait.
  void spawn(asio::awaitable<void> task);
  // One transaction of the journal, on the pool.
  asio::awaitable<Status> write_journal(journal::Batch batch, journal::Durability durability);
  std::string log_name() const;

  // ---- BoardUser ----
  void on_event(const board::Event& event) override;
  void on_tick(uint64_t now_ns) override;
  void on_board_lost() override;
  void on_claimed(bool adopted) override;

 private:
  struct Token {};

 public:
  Session(Token token, std::shared_ptr<Context> context, std::string id);

 private:
  // session.cc: life
  asio::awaitable<void> run(std::shared_ptr<Session> self);
  asio::awaitable<Status> attempt();
  asio::awaitable<Status> begin_and_run();
  asio::awaitable<void> end_attempt();
  asio::awaitable<void> send_last_word();
  asio::awaitable<void> finish();
  void report_end();

  // session_rest.cc: between attempts
  asio::awaitable<void> rest();
  asio::awaitable<void> wait_paused();
  asio::awaitable<bool> wait_turn(const Error& error);
  void end_with(Error error);

  // session_handshake.cc
  asio::awaitable<Status> adopt();
  asio::awaitable<Status> initiate();
  asio::awaitable<Status> serve();
  asio::awaitable<Status> run_source(std::vector<SourceItem> items);
  asio::awaitable<Status> run_destination();
  asio::awaitable<Status> run_settled();
  Abilities abilities() const;
  Status take_agreement(const peer::Specification& specification, const peer::SpecificationSet& set);

  // session_stream.cc
  void start_stream(std::unique_ptr<peer::Connection> connection);
  asio::awaitable<void> read_loop(std::shared_ptr<Session> self,
                                  std::shared_ptr<peer::Connection> connection);
  asio::awaitable<void> heartbeat_loop(std::shared_ptr<Session> self,
                                       std::shared_ptr<peer::Connection> connection);
  asio::awaitable<void> keep_stream();
  asio::awaitable<bool> renew_stream();
  void handle(const peer::PeerMessage& message);
  asio::awaitable<Result<peer::PeerMessage>> expect(peer::PeerMessage::BodyCase body, const char* waiting_for,
                                                    bool patient);
  peer::PeerMessage hello(bool with_flows) const;
  bool same_flows(const peer::Hello& hello) const;

  // session_resources.cc
  Status take_slot();
  asio::awaitable<Status> take_lanes(uint32_t lanes, bool may_wait);
  asio::awaitable<Status> take_budget(board::Direction direction);
  bool try_budget(board::Direction direction);
  std::vector<uint16_t> local_ports() const;
  void shrink_lanes(uint32_t lanes);
  asio::awaitable<Status> open_lanes();
  asio::awaitable<void> close_lanes();
  board::FlowConfig flow_config(const Lane& lane, uint16_t peer_port) const;

  // session_journal.cc
  journal::SessionRecord record() const;
  asio::awaitable<Status> journal_session(journal::Durability durability);
  asio::awaitable<Status> journal_files();
  asio::awaitable<void> forget_files();
  asio::awaitable<void> journal_end();

  // session_figures.cc
  void read_figures();
  FlowFigures figures() const;  // of all attempts
  void watch(uint64_t now_ns);
  void flow_closed(const board::Event& event);
  void check_stall(uint64_t now_ns);
  uint64_t bytes_done() const;

  std::shared_ptr<Context> context_;
  Notify changed_;
  std::string id_;
  bool initiator_ = false;
  std::optional<identity::Peer> peer_;     // initiator: where to connect
  std::optional<SessionRequest> request_;  // initiator
  std::string peer_name_;
  std::shared_ptr<peer::Connection> connection_;
  std::optional<Incoming> incoming_;  // not taken yet
  std::deque<peer::PeerMessage> inbox_;
  std::unique_ptr<DataEnd> end_;
  bool is_source_ = false;
  OnEnd on_end_;

  std::optional<uint32_t> slot_;
  std::vector<Lane> lanes_;
  Agreement agreement_;
  std::vector<board::Event> early_events_;  // of claimed flows, before the attempt runs

  api::Session::State state_ = api::Session::NEGOTIATING;
  std::string waiting_for_;
  std::optional<Error> attempt_error_;
  std::optional<Error> error_;  // the session's end
  bool error_is_peers_ = false;
  bool began_ = false;      // files are agreed upon and in the journal: it can go on after anything
  bool contacted_ = false;  // the peer has said hello, or this is from the journal: worth another attempt
  bool claimed_ = false;    // flows of a former control wait
  bool claim_pending_ = false;
  bool cancelled_ = false;
  bool paused_ = false;    // by an operator here, or held by an error
  std::string paused_by_;  // the other node, by its operator
  std::optional<Error> held_;
  bool detached_ = false;
  bool told_ = false;  // the peer, why the last attempt ended
  bool peer_unaware_ = false;
  bool board_lost_ = false;
  bool data_running_ = false;
  bool reading_ = false;
  bool winding_down_ = false;
  bool ended_ = false;
  uint32_t tasks_ = 0;
  uint32_t attempts_ = 0;

  int64_t started_unix_ns_ = 0;
  uint64_t started_ns_ = 0;
  uint64_t ended_ns_ = 0;
  uint64_t data_started_ns_ = 0;
  uint64_t data_ended_ns_ = 0;
  uint64_t heard_ns_ = 0;
  uint64_t interrupted_ns_ = 0;  // since when no attempt got anywhere; 0: data moves
  uint64_t backoff_ns_ = 0;
  FlowFigures figures_;            // of this attempt
  FlowFigures former_figures_;     // of those before
  uint64_t saved_bytes_done_ = 0;  // as the journal's figures have it
  RateMeter meter_;
  uint64_t watched_ns_ = 0;
  uint64_t progress_mark_ = 0;
  uint64_t progress_ns_ = 0;
};

}  // namespace sluice::control
