// One life of a simulated control: the transfers that its journal knows, and those that come to it.
//
// What sluice-control's manager does around the production's transfers: it finds the dataplane, hands calls
// of the other node to whom they belong, and obeys its operator.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

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
  void call_ended(Streams::Id id, bool open);
  void message(Streams::Id id, const transfer::Message& message);
  void stream_ended(Streams::Id id);
  void thaw();  // it stood still
  // The operator
  void ask(const std::string& id);  // for the transfer of the plan
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
  std::vector<std::pair<Streams::Id, transfer::Message>> unheard_;  // while it stood still
  bool stopping_ = false;
};

}  // namespace sluice::sim
