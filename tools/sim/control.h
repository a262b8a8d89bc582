// One life of a simulated control: the transfers that its journal knows, and those that come to it.
//
// What sluice-control's manager does around the production's transfers: it finds the dataplane, hands calls
// of the other node to whom they belong, and obeys its operator.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <set>
#include <string>
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
  // The operator
  void ask(const std::string& id);  // for the transfer of the plan
  void pause();
  void go_on();
  void cancel();
  void stop();  // this control ends in order

  // Nothing is under way.
  bool quiet() const;
  bool stopped() const { return stopping_ && quiet(); }
  std::string describe() const;

 private:
  std::shared_ptr<Session> add(std::unique_ptr<transfer::Transfer> transfer);
  void check_dataplane();
  void attach();
  void finish_attach();
  void receive(Streams::Id id, const transfer::Hello& hello);
  std::vector<std::shared_ptr<Session>> sessions() const { return sessions_; }

  Host& host_;
  transfer::Settings settings_;
  std::vector<std::shared_ptr<Session>> sessions_;
  std::unique_ptr<control::BoardFlows> flows_;
  uint64_t generation_ = 0;          // of the dataplane that flows_ belongs to
  uint64_t leftovers_until_ns_ = 0;  // attaching: until then they may end
  bool attached_ = false;
  bool stopping_ = false;
};

}  // namespace sluice::sim
