// Where peers ask about names of this node, or have them changed. docs/WIRE.md, 2.6.
//
// On the loop's thread; the work itself is done on threads of its own (Services::names_pool), so that a slow
// file system holds up neither the loop nor the journal, nor questions about another export. So many calls at
// a time, of each peer fewer; what one keeps in memory is bounded by its pages and its walk.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <chrono>
#include <memory>
#include <set>
#include <string>

#include "control/exports/listing.h"
#include "control/exports/pulse.h"
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
  asio::awaitable<void> serve(std::shared_ptr<peer::Connection> connection, transfer::Hello hello);
  // Every call ends, and no other begins.
  void stop();

 private:
  using CallPtr = std::shared_ptr<SessionlessCall>;
  // Outlives the call where a thread still works for it.
  struct Work {
    std::shared_ptr<runtime::Services> services;
    exports::Pulse pulse;
    std::unique_ptr<exports::Listing> listing;
    std::string key;  // of its export
  };
  using WorkPtr = std::shared_ptr<Work>;

  Status check_room(const std::string& peer) const;
  Status check_answers(const std::string& key) const;  // not all places of this export are held up
  // `asked`: for the log, once it is known.
  asio::awaitable<Status> answer(CallPtr call, std::string* asked);
  asio::awaitable<Status> list(CallPtr call, names::List asked);
  asio::awaitable<Status> change(CallPtr call, names::Request asked);
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
