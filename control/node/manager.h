// The transfers of this node: what an operator asked for here, what peers asked for, and what a former
// control left in the journal.
//
// All methods run on control's one io_context thread and none blocks it but start(), before the loop runs.
// A transfer always ends in success, in failure with a reason, or stays in a visible named wait.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <asio/steady_timer.hpp>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "control/metrics/figures.h"
#include "control/node/expiry_warnings.h"
#include "control/node/names_asker.h"
#include "control/node/names_desk.h"
#include "control/node/options.h"
#include "control/node/verify.h"
#include "control/peer/connection.h"
#include "control/runtime/preview.h"
#include "control/runtime/transfer_task.h"
#include "control/transfer/peer_call.h"
#include "control/transfer/view.h"

namespace sluice::node {

struct NodeInfo {
  std::string name;
  std::string fingerprint;
  bool dataplane_attached = false;
  board::PortInfo port{};  // of the last attach
  std::string crc_variant;
  std::vector<config::Export> exports;
  std::vector<identity::Peer> peers;    // that are pinned
  std::vector<identity::Offer> offers;  // of these
  std::string control_address;
  uint64_t longest_turn_ns = 0;  // of control's loop
  std::string longest_turn;      // what it did
  std::vector<control::KeyedPool::Wait> export_waits;
};

// A session's network log as it is now; on the loop, within one turn.
struct LogView {
  std::string id;
  int64_t started_unix_ns = 0;
  bool ended = false;
  const control::SessionLog* log = nullptr;
};

// Of the log of a part of the daemons (dataplane/base/log.h).
struct ComponentLevel {
  std::string component;
  std::string level;  // empty: the dataplane is not there to say
};

struct PeerAbout {
  names::NodeState state;
  ClockOffset clock;
};

// How the dataplane stands, as the board tells; nothing: none is attached.
struct DataplaneState {
  uint64_t sandbox = 0;  // what it has given up: sandbox::State::bits()
  uint64_t refused_calls = 0;
  board::Link link = board::Link::kUnknown;
};

struct CounterValue {
  std::string name;
  std::string unit;
  std::string help;
  uint64_t value = 0;
};

// Of what a source would send (runtime/preview.h).
using Preview = std::function<Status(const runtime::TakePreview&)>;

class Manager {
 public:
  Manager(asio::io_context& io, const config::Node& node, identity::Identity identity,
          exports::Exports exports, std::unique_ptr<journal::Journal> journal);
  ~Manager();  // before `io`
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  // Finds what the journal has, then listens for peers and looks for the dataplane. An error is final.
  Status start();
  // Lets go of every transfer (flows and files stay for the next control), then leaves the loop without work,
  // so that its run() returns. The caller may stop the loop earlier if that takes too long.
  void stop();
  // After the loop: calls into file systems have so long to come back. Where some do not, it returns the
  // exports that they are in; the process must then end as it is (KeyedPool::settle).
  std::string settle(std::chrono::milliseconds limit);
  // Whoever opens files for users is waited for no longer. Any thread.
  void give_up_users() const {
    services_->users.give_up();
    services_->callers.give_up();
  }
  // Where processes call that open files for their user, outside the exports.
  users::Callers& callers() { return services_->callers; }

  // Checks what can be checked at once (peer known, sources readable, options valid); the rest the transfer
  // tells. Returns its id.
  asio::awaitable<Result<std::string>> send(Wishes wishes);
  asio::awaitable<Result<std::string>> get(Wishes wishes);
  // What `send` would send: for a thread of the caller's own.
  asio::awaitable<Result<Preview>> preview(Wishes wishes);
  std::vector<transfer::View> list() const;       // newest last; ended ones are kept (256)
  std::vector<std::string> ended() const;         // ids of those that have, and are still known
  std::vector<transfer::View> overviews() const;  // that have not ended, without their files
  Result<transfer::View> show(const std::string& id) const;
  // Of a session that has flows; otherwise none.
  std::vector<metrics::LaneFigures> lanes(const std::string& id) const;
  // Once the journal has it: an operator who was told finds it so after the death of anything.
  asio::awaitable<Result<transfer::View>> cancel(std::string id);
  asio::awaitable<Result<transfer::View>> pause(std::string id);
  asio::awaitable<Result<transfer::View>> go_on(std::string id);
  asio::awaitable<Result<transfer::View>> limit(std::string id, uint64_t limit_bps);  // 0: as agreed upon
  asio::awaitable<Result<transfer::View>> prioritize(std::string id, int32_t priority);
  // log.cc: the network log
  Result<LogView> log(const std::string& id) const;
  Result<std::string> set_log_level(const std::string& id, const std::string& name);  // -> the whole id
  // And of the daemons' own log: how much each component tells. A restart goes back to the configuration.
  asio::awaitable<std::vector<ComponentLevel>> component_levels();
  asio::awaitable<Status> set_component_level(std::string component, std::string level);  // "": of all
  // What `sluice verify` reads back, and where.
  asio::awaitable<Result<ToVerify>> verification(std::string id);
  VerifyPlace verify_place(std::shared_ptr<const exports::Exports> exports) const;
  // A question about names, to a peer.
  asio::awaitable<Result<std::shared_ptr<NamesAsker>>> ask(std::string peer, names::Request request);
  asio::awaitable<Result<PeerAbout>> about(std::string peer);  // about.cc
  const exports::Exports& exports() const { return services_->exports; }
  // As whoever it is whose session it is has them.
  exports::Exports exports_of(const transfer::View& view) const {
    const transfer::AskerView& asker = view.asker;
    return asker.user || asker.local_files ? services_->exports_for(view.peer, asker.user, asker.local_files)
                                           : services_->exports;
  }
  const audit::AuditLog& audit() const { return services_->audit; }
  // `news` is called whenever a transfer has ended; one listener.
  void when_ended(std::function<void()> news) { news_ = std::move(news); }
  asio::awaitable<Result<NodeInfo>> info();
  Result<std::vector<CounterValue>> counters() const;  // kDaemonNotRunning without a dataplane
  std::optional<DataplaneState> dataplane_state() const;
  metrics::NodeFigures figures() const;  // for a scrape; some 0.1 ms

 private:
  using Task = std::shared_ptr<runtime::TransferTask>;
  static constexpr size_t kEndedKept = 256;

  Error no_dataplane() const;
  // For one more session. Users of this host together have no more than a peer has.
  Status check_room(const std::optional<transfer::User>& user = {}) const;
  asio::awaitable<Result<transfer::View>> tell(Task task, transfer::Event wish);
  asio::awaitable<Result<std::string>> begin(transfer::Role role, Wishes wishes);
  Task begin_now(transfer::Role role, std::string peer, transfer::Request request,
                 runtime::OpenSources sources, board::LogLevel log_level);
  void close_sources(const std::string& peer, const transfer::Request& request,
                     decltype(runtime::OpenSources::open) open);
  Status check_deadline(transfer::Role role, const std::string& peer, const transfer::Request& request) const;
  int64_t next_start_ns();
  Task add(std::unique_ptr<transfer::Transfer> transfer, runtime::OpenSources sources);
  void changed(runtime::TransferTask& task);
  void note(std::string line);         // in the audit log, in the order of the calls
  bool remember(transfer::View view);  // false: it was known already
  // The one whose id begins with `id`.
  Result<transfer::View> find(const std::string& id) const;
  Result<Task> find_active(const std::string& id) const;
  Task active(const std::string& id) const;  // nothing: none, or it has ended

  // restore.cc: what a former control left
  Status restore();
  void expect(const std::vector<transfer::Record>& records);

  // reception.cc: connections of peers
  asio::awaitable<void> serve(std::shared_ptr<bool> alive, std::shared_ptr<peer::Connection> connection);
  asio::awaitable<void> receive(std::shared_ptr<bool> alive, std::shared_ptr<peer::Connection> connection,
                                transfer::Hello hello);
  // Says the error, and logs the reason.
  asio::awaitable<void> refuse(std::shared_ptr<peer::Connection> connection, Error error, std::string reason);
  transfer::UnderId under_id(const std::string& id) const;  // without the journal
  Status check_room_for(const std::string& peer) const;
  void take_call(const std::shared_ptr<peer::Connection>& connection, const transfer::Hello& hello);

  // export_watch.cc: file systems that do not answer
  std::vector<control::KeyedPool*> pools() const;
  std::vector<control::KeyedPool::Wait> export_waits() const;  // one for each key
  asio::awaitable<void> watch_exports(std::shared_ptr<bool> alive);
  void look_at_exports();

  // trust_watch.cc: keys that change while something runs
  asio::awaitable<void> watch_trust(std::shared_ptr<bool> alive);
  void look_at_trust(const identity::Standing& now);
  void end(const Task& task, const std::string& reason);
  void renew_soon(const Task& task, const identity::Standing& now);
  asio::awaitable<void> renew(std::shared_ptr<bool> alive, identity::Standing now, identity::Peer peer);

  const std::shared_ptr<runtime::Services> services_;
  control::Pool::Serial audit_queue_ = services_->pool.serial();
  std::function<void()> news_ = [] {};
  const std::shared_ptr<NamesDesk> names_desk_ = std::make_shared<NamesDesk>(services_);
  std::unique_ptr<peer::Listener> listener_;
  std::vector<Task> tasks_;
  std::deque<transfer::View> ended_;
  uint64_t ended_count_ = 0;
  decltype(metrics::NodeFigures::ended) ended_by_code_{};  // in this life of the daemon
  int64_t last_start_ns_ = 0;                              // of the newest session
  bool stopping_ = false;
  const std::shared_ptr<asio::steady_timer> trust_timer_ =
      std::make_shared<asio::steady_timer>(services_->io);
  const std::shared_ptr<asio::steady_timer> export_timer_ =
      std::make_shared<asio::steady_timer>(services_->io);
  std::set<std::string> held_up_;  // keys of export_waits(), as of the last look
  ExpiryWarnings warnings_;
  std::vector<identity::Expiry> expiries_;        // as of the last look
  std::map<std::string, uint64_t> ask_again_ns_;  // by peer: when it is asked again to take the new key
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // coroutines may outlive this object
};

}  // namespace sluice::node
