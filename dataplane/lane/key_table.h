// Secrets of flows on their way from control to the worker that opens the flow.
//
// The main thread puts one in, the worker takes it out when it opens its flow. Neither waits: an entry has
// one state, which whoever wants to use it changes first. What was taken is wiped here. One that nobody takes
// is written over by the next flow of its slot, and is good for nothing but a flow that was never opened.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "dataplane/board/board.h"
#include "dataplane/core/wire.h"
#include "dataplane/seal/key_chain.h"

namespace sluice::lane {

struct FlowSecret {
  uint32_t tag = 0;  // of the flow's config
  wire::Protection protection = wire::Protection::kCrc;
  seal::Secret secret{};

  FlowSecret() = default;
  FlowSecret(uint32_t its_tag, wire::Protection its_protection, const seal::Secret& its_secret)
      : tag(its_tag), protection(its_protection), secret(its_secret) {}
  ~FlowSecret() { seal::wipe(secret); }
  FlowSecret(const FlowSecret&) = default;
  FlowSecret& operator=(const FlowSecret&) = default;
};

// Lies in a seal::SecretBox.
class KeyTable {
 public:
  // Main thread. False: a worker is taking what is there.
  bool put(uint32_t flow_slot, const FlowSecret& secret) {
    Entry& entry = entries_[flow_slot];
    if (!begin(entry, State::kEmpty) && !begin(entry, State::kFull)) return false;
    entry.secret = secret;
    entry.state.store(State::kFull, std::memory_order_release);
    return true;
  }

  // A worker. False: there is none for this flow. One of another flow of the slot stays.
  bool take(uint32_t flow_slot, uint32_t tag, FlowSecret* secret) {
    Entry& entry = entries_[flow_slot];
    if (!begin(entry, State::kFull)) return false;
    const bool its = entry.secret.tag == tag;
    if (its) {
      *secret = entry.secret;
      seal::wipe(entry.secret.secret);
    }
    entry.state.store(its ? State::kEmpty : State::kFull, std::memory_order_release);
    return its;
  }

 private:
  enum class State : uint32_t { kEmpty, kFull, kInUse };
  struct Entry {
    std::atomic<State> state{State::kEmpty};
    FlowSecret secret;
  };
  static bool begin(Entry& entry, State from) {
    return entry.state.compare_exchange_strong(from, State::kInUse, std::memory_order_acquire);
  }

  std::array<Entry, board::kFlowsMax> entries_;
};

}  // namespace sluice::lane
