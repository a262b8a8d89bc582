// Which sessions of a node run, and which wait for their turn: the higher priority first, then those of
// operators, then in turn those of each node, and of each of its users, so that nobody's many sessions keep
// others waiting.
//
// Pure. So many run at a time as the node may have (sessions_max), and of those that one peer began its share
// (sessions_per_peer). Users of a node never have all that the node may have, nor one user all that users may
// have: operators find a place at once, and so does another user. Nobody holds anything while it waits, and
// neither those that this node began nor those that others began ever have all places: the last one is kept
// for the other kind. So two nodes that are full of sessions with each other never wait for each other: each
// still takes in one that the other began.
//
// `caller` is the peer that began a session; empty: this node did. What peers began has priority 0: nobody
// else puts a session before those of this node's operators. `share` stands for the user of that node; 0: an
// operator.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace sluice::transfer {

class SessionQueue {
 public:
  // At least one of each kind.
  SessionQueue(uint32_t sessions_max, uint32_t per_peer)
      : places_(std::max(sessions_max, 2U)), per_peer_(per_peer) {}

  // A session that a former control left will ask: it comes before whoever asks meanwhile, and holds up
  // nobody until it does.
  void expect(const std::string& id, const std::string& caller, int32_t priority = 0, uint32_t share = 0);
  // It wants to run: it waits behind those of its priority, unless it is known already. With another priority
  // than before it moves.
  void ask(const std::string& id, const std::string& caller, int32_t priority = 0, uint32_t share = 0);
  // It runs, whoever waits: its flows are open.
  void run(const std::string& id, const std::string& caller, uint32_t share = 0);
  // It runs no more, or does not want to.
  void leave(const std::string& id);
  // It cannot run just now: when it asks again, it comes before those who came after it. Until then it holds
  // up nobody.
  void step_aside(const std::string& id);
  // It runs, and a file system that does not answer holds it up: until it answers, others may have its place.
  void set_held_up(const std::string& id, bool held_up);
  // Those who run from now on, in order. To be called after any of the above.
  std::vector<std::string> admit();

  bool runs(const std::string& id) const { return running_.contains(id); }
  uint32_t place(const std::string& id) const;  // 1: the next; 0: it does not wait
  uint32_t waiting() const { return static_cast<uint32_t>(numbers_.size()); }
  uint32_t running() const { return static_cast<uint32_t>(running_.size()); }

 private:
  struct Session {
    std::string caller;
    uint64_t number = 0;  // in the order in which they came
    int32_t priority = 0;
    uint32_t share = 0;
    bool held_up = false;
  };
  struct Waiting {
    Session session;
    bool asked = false;
  };
  bool has_room(const Session& session) const;
  std::vector<std::string> in_turn() const;

  const uint32_t places_;
  const uint32_t per_peer_;
  std::map<std::string, Waiting> waiting_;
  std::map<std::string, Session> running_;
  uint64_t next_number_ = 0;
  std::map<std::string, uint32_t> numbers_;  // of those who have asked, by admit()
};

}  // namespace sluice::transfer
