// A session goes to another node, or comes from one (docs/WIRE.md 2.15; decision 20).
//
// On the loop's thread; what blocks runs on pools. While a session is on its way into the journal, or out of
// it, it has no task, and busy() says so: nobody may begin anything under its id meanwhile. Whatever dies,
// the journal has the session whole: at rest here, or gone to another node.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <chrono>
#include <memory>
#include <set>
#include <string>

#include "control/grant/move.h"
#include "control/journal/bundle.h"
#include "control/node/sessions.h"

namespace sluice::node {

class Moves {
 public:
  static constexpr std::chrono::seconds kRestsWithin{60};  // what is to go has let go of its files
  static constexpr uint32_t kWithinS = 86400;  // the other node has called by then, if nobody says more

  // `sessions` outlives it.
  Moves(std::shared_ptr<runtime::Services> services, Sessions& sessions);
  ~Moves();
  Moves(const Moves&) = delete;
  Moves& operator=(const Moves&) = delete;

  bool busy(const std::string& id) const { return busy_.contains(id); }

  // Ends it here, in the journal first, and returns the bundle. Said again it is the same bundle.
  asio::awaitable<Result<std::string>> give(std::string id, std::string to, uint32_t within_s);
  // It is to go on here after all: paused, and the peer believes whoever comes first.
  asio::awaitable<Result<transfer::View>> withdraw(std::string id);
  // A bundle: its session goes on here.
  asio::awaitable<Result<transfer::View>> take(std::string bundle);

  // At the peer of such a session: a node shows a move. What becomes of the call?
  enum class Shown : uint8_t {
    kGoOn,   // the move changes nothing: the call is judged as any other
    kEnded,  // the session has ended here
    kLater,  // the session is being given to the caller: it calls again
  };
  // `saved`: what the journal has of it, without blocks. kMoved: another node goes on with it.
  // kPeerUntrusted: the caller's operator has to mend something.
  Result<Shown> shown(const identity::Peer& caller, const transfer::Hello& hello,
                      const std::optional<transfer::Saved>& saved, const identity::Standing& now);

 private:
  struct Busy;
  asio::awaitable<Status> check_target(std::string peer, std::string to);
  asio::awaitable<Status> bring_to_rest(std::string id);
  asio::awaitable<Status> let_go(Sessions::Task task, transfer::Event how);
  asio::awaitable<Result<transfer::Saved>> saved(std::string id);
  asio::awaitable<Result<std::string>> give_now(transfer::Saved saved, std::string to, uint32_t within_s);
  asio::awaitable<void> hand_over(transfer::Moved moved, Sessions::Task task);
  // moves_taken.cc
  struct Arrival {
    transfer::SignedMove move;
    std::string from;
    uint64_t epoch = 0;
    journal::MovedRows rows;
  };
  static Result<Arrival> read_bundle(const std::string& bytes, const identity::Standing& here);
  asio::awaitable<Status> check_new(std::string id, std::string peer, uint64_t epoch);
  asio::awaitable<Status> find_files(transfer::Saved* saved);
  asio::awaitable<Status> write_all(const transfer::Saved& saved);
  // The files of a session as they are called here, and may this node move them?
  Status place(journal::MovedRows* rows) const;
  Sessions::Task go_on(const transfer::Saved& saved);

  const std::shared_ptr<runtime::Services> services_;
  Sessions& sessions_;
  std::set<std::string> busy_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // coroutines may outlive this object
};

}  // namespace sluice::node
