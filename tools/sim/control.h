// One life of a simulated control: the transfers that its journal knows, and those that come to it.
//
// What sluice-control's manager does around the production's transfers: it finds the dataplane, hands calls
// of the other node to whom they belong, and obeys its operator.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "control/lease/lease_claims.h"
#include "tools/sim/session.h"

namespace sluice::sim {

class Control : public std::enable_shared_from_this<Control> {
 public:
  explicit Control(Host& host);
  ~Control();

  void start();  // what the journal has
  void tick();
  // The connections
  bool owns(Streams::Id id) const;
  void call_ended(Streams::Id id, bool open, bool said);
  void message(Streams::Id id, const transfer::Message& message);
  void stream_ended(Streams::Id id);
  void thaw();  // it stood still
  // The operator
  // For the transfer of the plan.
  void ask(const std::string& id, const std::optional<transfer::Lease>& lease);
  void pause();
  void go_on();
  void cancel();
  void stop();                  // this control ends in order
  void kill_leg(uint32_t leg);  // its workers close its flows

  // Nothing is under way.
  bool quiet() const;
  bool stopped() const { return stopping_ && quiet(); }
  // Sessions upon whose files both nodes agreed, and that have not ended here.
  std::vector<std::string> going_on() const;
  bool has(const std::string& id) const;
  std::string describe() const;

 private:
  std::unique_ptr<transfer::Transfer> with_legs(std::unique_ptr<transfer::Transfer> transfer) const;
  std::shared_ptr<Session> add(std::unique_ptr<transfer::Transfer> transfer);
  void check_dataplane();
  void attach();
  void finish_attach();
  void receive(Streams::Id id, const transfer::Hello& hello);
  // A call, and what this node has under its id.
  struct Called {
    const transfer::Hello& hello;
    uint32_t caller = 0;               // a node
    std::shared_ptr<Session> session;  // that runs
    const transfer::Saved* saved = nullptr;
  };
  void say(Streams::Id id, std::vector<transfer::Message> words);
  void say_later(Streams::Id id);
  // Leases and grants (control_papers.cc). may_write: false: what runs under a lower epoch has not ended.
  Result<std::optional<transfer::Granted>> judge_grant(const Called& called);
  Result<bool> may_write(const Called& called);
  void judge_beginning(const Called& called) const;  // of the destination, which takes this call
  bool end_lower(const transfer::Lease& lease);
  bool broken_memory(const transfer::Hello& hello) const {  // a deliberate defect
    return host_.plan.broken == Break::kReplayedGrant && hello.grant.has_value();
  }
  void restore_leases();
  void look_at_grants();
  void freeze_near_the_end();
  std::vector<std::shared_ptr<Session>> sessions() const { return sessions_; }

  Host& host_;
  transfer::ThisNode settings_;
  std::vector<std::shared_ptr<Session>> sessions_;
  std::unique_ptr<board::BoardFlows> flows_;
  uint64_t generation_ = 0;          // of the dataplane that flows_ belongs to
  uint64_t leftovers_until_ns_ = 0;  // attaching: until then they may end
  bool attached_ = false;
  bool froze_ = false;
  lease::LeaseClaims claims_;
  uint64_t looked_at_grants_ns_ = 0;
  std::vector<std::pair<Streams::Id, transfer::Message>> unheard_;  // while it stood still
  bool stopping_ = false;
};

}  // namespace sluice::sim
