// Which sessions of a node run, and which wait for their turn. The higher priority goes first, then sessions
// of operators. Then nodes take turns, and the users of a node among themselves, so that nobody's many
// sessions keep others waiting.
//
// Pure. At most sessions_max run at a time, and at most sessions_per_peer of those that one peer began. Users
// of a node never have all places that the node may have, and no user has all that users may have: so an
// operator finds a place at once, and so does another user. Nobody holds anything while it waits. The last
// place is kept for the other kind: sessions that this node began never have all places, nor do those that
// others began. So two nodes that are full of sessions with each other never wait for each other: each still
// takes in one that the other began.
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

namespace sluice::node {

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
  bool is_sound() const;

  const uint32_t places_;
  const uint32_t per_peer_;
  std::map<std::string, Waiting> waiting_;
  std::map<std::string, Session> running_;
  uint64_t next_number_ = 0;
  std::map<std::string, uint32_t> numbers_;  // of those who have asked, by admit()
};

}  // namespace sluice::node
