// Where peers ask about names of this node, or have them changed. docs/WIRE.md, 2.6.
//
// Where the map of users says whom the peer's user is here ([control] users_map_file), names are listed and
// changed by a process of that user, with the rights of the exports for the peer besides (2.20).
//
// On the loop's thread; the work itself is done on threads of its own (Services::names_pool), so that a slow
// file system holds up neither the loop nor the journal, nor questions about another export. So many calls at
// a time, of each peer fewer; what one keeps in memory is bounded by its pages and its walk.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "control/exports/as_user.h"
#include "control/exports/listing.h"
#include "control/exports/pulse.h"
#include "control/identity/user_map.h"
#include "control/names/words.h"
#include "control/node/sessionless_call.h"
#include "control/runtime/services.h"

namespace sluice::node {

class NamesDesk : public std::enable_shared_from_this<NamesDesk> {
 public:
  static constexpr size_t kCallsMax = 32;
  static constexpr size_t kCallsPerPeerMax = 4;

  explicit NamesDesk(std::shared_ptr<runtime::Services> services) : services_(std::move(services)) {}

  // A call from its Hello to its end.
  asio::awaitable<void> serve(std::shared_ptr<peer::Connection> connection, transfer::Hello hello,
                              std::shared_ptr<const identity::UserMap> map);
  // Every call ends, and no other begins.
  void stop();

 private:
  using CallPtr = std::shared_ptr<SessionlessCall>;
  // Outlives the call where a thread still works for it.
  struct Work {
    std::shared_ptr<runtime::Services> services;
    exports::Pulse pulse;
    std::unique_ptr<exports::UserNames::List> listing;
    std::unique_ptr<exports::UserNames> user;  // who does it; nothing: this process
    std::string key;                           // of its export, or of the user
  };
  using WorkPtr = std::shared_ptr<Work>;
  using Whom = std::optional<transfer::Mapped>;

  Status check_room(const std::string& peer) const;
  Status check_answers(const std::string& key) const;  // not all places of this export are held up
  // `asked`: for the log, once it is known.
  asio::awaitable<Status> answer(CallPtr call, Whom whom, std::string* asked);
  asio::awaitable<Status> list(CallPtr call, Whom whom, names::List asked);
  asio::awaitable<Status> change(CallPtr call, Whom whom, names::Request asked);
  WorkPtr work_for(const Whom& whom, std::string key) const;
  asio::awaitable<Status> about(CallPtr call, int64_t asked_unix_ns);
  asio::awaitable<Status> await_credit(CallPtr call, uint64_t sent, uint64_t* granted);
  // Runs on a thread while the call lives and the work goes on.
  template <typename Job>
  asio::awaitable<std::invoke_result_t<Job&>> perform(CallPtr call, WorkPtr work, Job job);

  const std::shared_ptr<runtime::Services> services_;
  std::set<CallPtr> calls_;
  bool stopped_ = false;
};

}  // namespace sluice::node
