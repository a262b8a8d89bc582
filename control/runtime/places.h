// The places of this node's sessions: who runs, who waits, and telling those whose turn has come.
//
// On the loop's thread. Nobody is told within a call: the word comes in a later turn of the loop.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/io_context.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "control/node/queue/session_queue.h"
#include "control/runtime/events.h"

namespace sluice::runtime {

class Places {
 public:
  Places(asio::io_context& io, uint32_t sessions_max, uint32_t per_peer)
      : io_(io), queue_(sessions_max, per_peer) {}

  // Of a former control and begun here, in the order in which they come: SessionQueue::expect.
  void expect(const std::string& id, int32_t priority, uint32_t share) {
    queue_.expect(id, "", priority, share);
  }
  void ask(const std::string& id, const std::string& caller, const transfer::AskPlace& wish,
           std::weak_ptr<EventQueue> who);
  void take(const std::string& id, const std::string& caller, uint32_t share);
  void leave(const std::string& id);
  void step_aside(const std::string& id);
  void set_held_up(const std::string& id, bool held_up) {
    queue_.set_held_up(id, held_up);
    admit();
  }
  const node::SessionQueue& queue() const { return queue_; }

 private:
  struct Asker {
    uint32_t ticket = 0;
    std::weak_ptr<EventQueue> who;
  };
  void admit();
  void tell(const std::string& id);

  asio::io_context& io_;
  node::SessionQueue queue_;
  std::map<std::string, Asker> askers_;
};

}  // namespace sluice::runtime
