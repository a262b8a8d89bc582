// Begins what an operator or a user of this host wants of a peer: a session that sends or gets.
//
// On control's one io_context thread; what blocks runs on pools. What can be checked at once (peer known,
// sources readable, options valid, deadline possible) is an error of the call; the rest the session tells.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <string>

#include "control/gather/preview.h"
#include "control/node/options.h"
#include "control/node/sessions.h"

namespace sluice::node {

// Of what a source would send (runtime/preview.h).
using Preview = std::function<Status(const gather::TakePreview&)>;

std::string new_session_id();  // 32 hex digits, by chance

// May this node begin something with the peer of this name? kConfiguration: nobody knows it, or its address.
Result<identity::Peer> check_peer(const config::Node& node, const std::string& name);

class Starter {
 public:
  // `sessions` outlives it.
  Starter(std::shared_ptr<runtime::Services> services, Sessions& sessions);
  ~Starter();
  Starter(const Starter&) = delete;
  Starter& operator=(const Starter&) = delete;

  // -> its id, once the journal has it.
  asio::awaitable<Result<std::string>> send(Wishes wishes);
  asio::awaitable<Result<std::string>> get(Wishes wishes);
  // What `send` would send: for a thread of the caller's own.
  asio::awaitable<Result<Preview>> preview(Wishes wishes);

 private:
  asio::awaitable<Status> take_lease(std::optional<transfer::Lease> lease);
  asio::awaitable<Result<std::string>> begin(transfer::Role role, Wishes wishes);
  struct Peers {
    std::string id;                  // of the session; empty: it gets a new one
    std::vector<std::string> names;  // one, or several that have the same
    uint64_t limit_bps = 0;          // that was asked for; of several all together
    std::optional<OrderTaken> order;
    std::optional<transfer::Lease> lease;
  };
  Sessions::Task begin_now(transfer::Role role, Peers peers, transfer::Request request,
                           gather::OpenSources sources, board::LogLevel log_level);
  void close_sources(const std::string& peer, const transfer::Request& request,
                     decltype(gather::OpenSources::open) open);
  Status check_deadline(transfer::Role role, const std::string& peer, const transfer::Request& request) const;

  const std::shared_ptr<runtime::Services> services_;
  Sessions& sessions_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // coroutines may outlive this object
};

}  // namespace sluice::node
