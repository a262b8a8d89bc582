// A question about names that this node has put to a peer. docs/WIRE.md, 2.6.
//
// On the loop's thread. One question, one call; destroyed, it hangs up, and the peer stops. How fast pages
// are taken here is how fast the peer sends them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <string>

#include "control/names/list_check.h"
#include "control/names/words.h"
#include "control/node/sessionless_call.h"
#include "control/runtime/services.h"

namespace sluice::node {

// Of a peer's clock: so much it is before ours, give or take. As NTP has it: the way there and the way back
// of one question took the same, or differ by twice `error_ns` at most.
struct ClockOffset {
  int64_t offset_ns = 0;
  uint64_t error_ns = 0;
  uint64_t round_trip_ns = 0;  // without the time that the peer took
};
// Of what a peer says anything may come.
ClockOffset clock_offset(const names::NodeState& peer, int64_t asked_unix_ns, uint64_t waited_ns);

struct NamesAnswer {  // neither: nothing has come for a while; ask again
  std::optional<names::Page> page;
  std::optional<names::Done> done;   // the last
  std::optional<ClockOffset> clock;  // of AboutNode
};

class NamesAsker {
 public:
  // Calls the peer, and asks. `user`: for whom; nothing: for an operator. kPeerUntrusted, kPeerUnreachable;
  // kConfiguration: it cannot be called, or names are to be changed for a user whom the peer has no map for;
  // kIncompatible: the peer is too old to know such questions.
  static asio::awaitable<Result<std::shared_ptr<NamesAsker>>> ask(std::shared_ptr<runtime::Services> services,
                                                                  identity::Peer peer, names::Request request,
                                                                  std::optional<transfer::User> user);
  ~NamesAsker();
  NamesAsker(const NamesAsker&) = delete;
  NamesAsker& operator=(const NamesAsker&) = delete;

  // An error is the peer's, or says in what it lied, and is final.
  asio::awaitable<Result<NamesAnswer>> next();

 private:
  NamesAsker(std::shared_ptr<SessionlessCall> call, const names::Request& request);
  asio::awaitable<Result<transfer::Hello>> greet();
  void put(const names::Request& request);
  Result<NamesAnswer> take(SessionlessCall::Said said);
  Result<NamesAnswer> take_page(names::Page page);
  Error cut_off(Error error);

  const std::shared_ptr<SessionlessCall> call_;
  int64_t asked_unix_ns_ = 0;
  uint64_t asked_ns_ = 0;                 // monotonic
  std::optional<names::ListCheck> list_;  // of a list
};

}  // namespace sluice::node
