// The sessions of this node: those that run, wait or rest, and the last that have ended.
//
// On control's one io_context thread; nothing here blocks. An id is in one place: a session that has not
// ended has one task, and one that has is remembered once. Whoever finds an id free may begin a session under
// it. What becomes of a session is in the audit log, in the order in which it happened.
//
// It begins no session (begin.h, reception.h, restore.h) and decides nothing for one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/metrics/figures.h"
#include "control/node/lease_desk.h"
#include "control/runtime/transfer_task.h"
#include "control/transfer/peer_call.h"
#include "control/transfer/view.h"

namespace sluice::node {

// Sessions of other nodes that this one has ordered, and follows (orders.h).
class Elsewhere {
 public:
  virtual ~Elsewhere() = default;
  virtual std::vector<transfer::View> views() const = 0;  // that have not ended
  virtual bool has(const std::string& id) const = 0;      // the one whose id begins so, and no other's
  virtual asio::awaitable<Result<transfer::View>> wish(std::string id, transfer::OrderWish wish) = 0;
};

class Sessions {
 public:
  using Task = std::shared_ptr<runtime::TransferTask>;
  static constexpr size_t kEndedKept = 256;
  // The journal has them for longer: the newest of those that have ended, and all that ended so short ago,
  // for peers that ask.
  static constexpr size_t kEndedInJournal = 1000;
  static constexpr int64_t kInJournalNs = 24 * 3600 * int64_t{1'000'000'000};
  // It forgets after each so many that have ended.
  static constexpr uint64_t kForgetEvery = 64;

  explicit Sessions(std::shared_ptr<runtime::Services> services);
  ~Sessions();  // before the loop
  Sessions(const Sessions&) = delete;
  Sessions& operator=(const Sessions&) = delete;

  // ---- which there are ----
  std::vector<transfer::View> list() const;  // by their starts, newest last; kEndedKept ended ones are kept
  std::vector<std::string> ended() const;    // ids of those that have, and are still known
  std::vector<transfer::View> overviews() const;  // that have not ended, without their files
  // The one whose id begins with `id`. kUsage: there is none, or there are several.
  Result<transfer::View> find(const std::string& id) const;
  // One that runs here. kUsage: it has ended, or never ran here (not_here()).
  Result<Task> find_active(const std::string& id) const;
  Task active(const std::string& id) const;                 // nothing: none, or it has ended
  transfer::UnderId under_id(const std::string& id) const;  // without the journal
  std::vector<Task> tasks() const { return tasks_; }        // ended ones among them, while they let go
  LeaseDesk& leases() { return leases_; }
  // As whoever it is whose session it is has them.
  exports::Exports exports_of(const transfer::View& view) const;

  // ---- what an operator changes: answered once the journal has it, so that it outlives a crash ----
  // `by`: a node that has ordered it; empty: an operator of this one.
  asio::awaitable<Result<transfer::View>> cancel(std::string id, std::string by = "");
  asio::awaitable<Result<transfer::View>> pause(std::string id);
  asio::awaitable<Result<transfer::View>> go_on(std::string id);
  asio::awaitable<Result<transfer::View>> limit(std::string id, uint64_t limit_bps);  // 0: as agreed upon
  asio::awaitable<Result<transfer::View>> prioritize(std::string id, int32_t priority);
  // It outlives this object, or is taken back with nullptr.
  void follow(Elsewhere* elsewhere) { elsewhere_ = elsewhere; }
  // `news` is called whenever one has ended; one listener.
  void when_ended(std::function<void()> news) { news_ = std::move(news); }

  // ---- for whoever begins them ----
  // For one more. Users of this host together have no more than a peer has. kResources, kDaemonNotRunning.
  Status check_room(const std::optional<transfer::User>& user = {}) const;
  Status check_room_for(const std::string& peer) const;  // one that this peer begins
  // Its id is free (active()). It runs from here on.
  Task add(std::unique_ptr<transfer::Transfer> transfer, gather::OpenSources sources);
  void ended_elsewhere(transfer::View view);  // one that this node has ordered
  bool remember(transfer::View view);         // one that has ended; false: it was known already
  void forget_ended(const std::string& id);   // it is begun anew under its id
  void note(std::string line);                // in the audit log, in the order of the calls
  static constexpr int64_t kClockPutBackNs = 1'000'000'000;
  int64_t next_start_ns();               // unix; the order of sessions is that of their starts
  void started_before(int64_t unix_ns);  // a former control began one then
  uint64_t ended_count() const { return ended_count_; }  // so many were ever remembered
  static Status forget_old(journal::Journal& journal);   // blocks
  // By their codes, in this life of the daemon.
  const decltype(metrics::NodeFigures::ended)& ended_by_code() const { return ended_by_code_; }

  // Lets go of every session: flows and files stay for the next control. None begins any more. `then` is
  // called once, when the last has let go.
  void stop(std::function<void()> then);
  bool stopping() const { return stopping_; }

 private:
  asio::awaitable<Result<transfer::View>> tell(Task task, transfer::Event wish);
  void note_end(transfer::View view);
  void forget_old_soon();
  void changed(runtime::TransferTask& task);

  const std::shared_ptr<runtime::Services> services_;
  async::Pool::Serial audit_queue_ = services_->pool.serial();
  async::Pool::Serial forget_queue_ = services_->pool.serial();
  std::function<void()> news_ = [] {};
  Elsewhere* elsewhere_ = nullptr;
  std::vector<Task> tasks_;
  LeaseDesk leases_{services_, tasks_};
  std::deque<transfer::View> ended_;
  uint64_t ended_count_ = 0;
  decltype(metrics::NodeFigures::ended) ended_by_code_{};
  int64_t last_start_ns_ = 0;  // of the newest session
  bool stopping_ = false;
  std::function<void()> stopped_;                                     // until it was called
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // a task may outlive this object
};

// Of a session between two other nodes: this node has ordered it, and has nothing of it. Nothing: it is not.
std::optional<Error> not_here(const transfer::View& view);

// kDaemonNotRunning: what needs the dataplane cannot be done without it.
Error no_dataplane(const config::Node& node);

}  // namespace sluice::node
