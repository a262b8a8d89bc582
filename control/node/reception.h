// Where peers call this node: each call is of a session here, begins one, asks about names, or is sent away.
//
// On control's one io_context thread. Nobody is heard before the key that they showed is trusted still. One
// call, one answer: a session takes it, the desk of names does, or the caller hears why not and is hung up
// on.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/node/moves.h"
#include "control/node/names_desk.h"
#include "control/node/order_desk.h"
#include "control/node/sessions.h"
#include "control/peer/connection.h"

namespace sluice::node {

class Reception {
 public:
  // `sessions`, `starter` and `moves` outlive it.
  Reception(std::shared_ptr<runtime::Services> services, Sessions& sessions, Starter& starter, Moves& moves);
  ~Reception();
  Reception(const Reception&) = delete;
  Reception& operator=(const Reception&) = delete;

  // Listens, unless this node only calls. An error is that of the address.
  Status open();
  void close();  // nobody calls any more; questions about names end
  // A peer's connection, from its first word on.
  void take(std::shared_ptr<peer::Connection> connection);
  // Those who are trusted call from there (peer::Listener::expect).
  void expect(const std::vector<std::string>& addresses);
  std::optional<peer::CallerCounts> counts() const;  // nothing: it does not listen

 private:
  asio::awaitable<void> serve(std::shared_ptr<bool> alive, std::shared_ptr<peer::Connection> connection);
  asio::awaitable<void> receive(std::shared_ptr<bool> alive, std::shared_ptr<peer::Connection> connection,
                                transfer::Hello hello, identity::Standing now);
  // Says the error, and logs the reason.
  asio::awaitable<void> refuse(std::shared_ptr<peer::Connection> connection, Error error, std::string reason);
  asio::awaitable<void> say_later(std::shared_ptr<peer::Connection> connection);
  struct Known {                           // of the session that a call names
    std::optional<transfer::Saved> saved;  // in the journal
    transfer::UnderId under_id;
    std::optional<transfer::Granted> granted;
  };
  asio::awaitable<Result<Known>> look_up(std::shared_ptr<bool> alive, std::string id);
  // By its grant, if it shows one, or has to.
  Result<std::optional<transfer::Granted>> judge(const peer::Connection& connection,
                                                 const transfer::Hello& hello, const Known& known,
                                                 const identity::Standing& now);
  // Whose session it is here. `issuer`: of the grant that it is begun by; or empty.
  asio::awaitable<Result<std::optional<transfer::Mapped>>> find_user(
      std::shared_ptr<peer::Connection> connection, const transfer::Hello& hello, const Known& known,
      std::string issuer, std::shared_ptr<const identity::UserMap> map);
  asio::awaitable<Result<bool>> may_write(const peer::Connection& connection, const transfer::Hello& hello,
                                          const Known& known);
  // May a call open its session, or go on with it, and as whom?
  struct Entry {
    bool later = false;  // not just now
    std::optional<transfer::Mapped> mapped;
  };
  asio::awaitable<Result<Entry>> enter(std::shared_ptr<bool> alive,
                                       std::shared_ptr<peer::Connection> connection,
                                       const transfer::Hello& hello, const Known& known, std::string issuer,
                                       std::shared_ptr<const identity::UserMap> map);
  void take_call(const std::shared_ptr<peer::Connection>& connection, const transfer::Hello& hello,
                 std::optional<transfer::Granted> granted, std::optional<transfer::Mapped> mapped);

  const std::shared_ptr<runtime::Services> services_;
  Sessions& sessions_;
  Moves& moves_;
  const std::shared_ptr<NamesDesk> names_desk_ = std::make_shared<NamesDesk>(services_);
  const std::shared_ptr<OrderDesk> order_desk_;
  std::unique_ptr<peer::Listener> listener_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // coroutines may outlive this object
};

}  // namespace sluice::node
