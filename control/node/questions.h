// What this node asks a peer outside of any session: about names, and about the peer itself.
//
// On control's one io_context thread. Each question is a call of its own (names_asker.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <string>

#include "control/node/names_asker.h"
#include "control/node/sessions.h"

namespace sluice::node {

struct PeerAbout {
  names::NodeState state;
  ClockOffset clock;
};

class Questions {
 public:
  // `sessions` outlives it; while these stop nothing is asked any more.
  Questions(std::shared_ptr<runtime::Services> services, const Sessions& sessions)
      : services_(std::move(services)), sessions_(sessions) {}

  // `user`: for whom it is asked; nothing: for an operator. Errors as of NamesAsker::ask; kDaemonNotRunning:
  // this node is stopping.
  asio::awaitable<Result<std::shared_ptr<NamesAsker>>> ask(std::string peer, names::Request request,
                                                           std::optional<transfer::User> user) const;
  // kIncompatible as well: the peer does not understand the question.
  asio::awaitable<Result<PeerAbout>> about(std::string peer) const;

 private:
  const std::shared_ptr<runtime::Services> services_;
  const Sessions& sessions_;
};

}  // namespace sluice::node
