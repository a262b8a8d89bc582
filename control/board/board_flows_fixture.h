// A board in memory, its workers played by the test, and users that write down what they are told.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "control/board/board_flows.h"

namespace sluice::board {

class TestUser final : public BoardUser {
 public:
  void on_attached(attach::AttachedBoard& /*board*/) override {}
  void on_event(const Event& event, const FlowState& flow) override {
    events.push_back(event);
    states.push_back(&flow);
    if (then) std::exchange(then, nullptr)();
  }
  void on_tick(uint64_t /*now_ns*/) override {}
  void on_admitted(const Admitted& what) override {
    admitted.push_back(what);
    if (const auto* flows = std::get_if<FlowsGranted>(&what.what)) {
      session = flows->session;
      grants = flows->flows;
    }
    if (then) std::exchange(then, nullptr)();
  }
  void on_board_lost() override {}
  void on_claimed(bool /*adopted*/) override {}

  std::vector<Event> events;
  std::vector<const FlowState*> states;  // that came with them
  std::vector<Admitted> admitted;
  SessionSlotId session;
  std::vector<FlowGrant> grants;
  std::function<void()> then;  // once, within the next call
};

class BoardFlowsTest : public testing::Test {
 protected:
  static constexpr uint16_t kPortBase = 47000;

  BoardFlowsTest() : board_(std::make_unique<Board>()) {
    PortInfo& port = board_->port;
    port.workers = 2;
    port.rx_extents = port.tx_extents = 34;
    port.udp_port_base = kPortBase;
    attach();
  }
  // As a control does that was just started.
  void attach() {
    flows_ = std::make_unique<BoardFlows>(*board_, board_->port,
                                          [this](uint32_t worker) { doorbells_.push_back(worker); });
  }

  static FlowConfig config_of(const TestUser& user, size_t lane, uint64_t flow_id) {
    FlowConfig config;
    config.flow_id = flow_id;
    config.rate_bps = 1'000'000 + lane;
    config.session = user.session.value();
    config.local_port = user.grants.at(lane).local_port;
    return config;
  }
  FlowSlotId open(TestUser& user, size_t lane, uint64_t flow_id) {
    const FlowSlotId slot = user.grants.at(lane).slot;
    flows_->open_flow(slot, config_of(user, lane, flow_id), &user);
    return slot;
  }
  // `lanes` open flows of a session of their own, with ids from `flow_id` on.
  void open_session(TestUser& user, uint32_t lanes, uint64_t flow_id) {
    flows_->ask_flows(&user, lanes, false);
    ASSERT_EQ(user.grants.size(), lanes);
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      ASSERT_TRUE(say_opened(open(user, lane, flow_id + lane)));
    }
    flows_->drain();
    user.events.clear();
    user.states.clear();
  }
  uint32_t worker_of(FlowSlotId slot) const {
    return (board_->flows[slot.value()].config.local_port - kPortBase) % board_->port.workers;
  }
  bool say(uint32_t worker, const Event& event) { return board_->workers[worker].events.push(event); }
  uint32_t tag_of(FlowSlotId slot) const { return board_->flows[slot.value()].config.tag; }
  bool say_opened(FlowSlotId slot, uint64_t refusal = 0) {
    return say(worker_of(slot),
               {.kind = EventKind::kFlowOpened, .flow = slot.value(), .tag = tag_of(slot), .value = refusal});
  }
  bool say_closed(FlowSlotId slot) {
    return say(worker_of(slot), {.kind = EventKind::kFlowClosed, .flow = slot.value(), .tag = tag_of(slot)});
  }
  // What the worker finds in its ring, taken out.
  std::vector<Command> commands(uint32_t worker) {
    std::vector<Command> all;
    for (Command command; board_->workers[worker].commands.pop(&command);) all.push_back(command);
    return all;
  }

  const std::unique_ptr<Board> board_;
  std::unique_ptr<BoardFlows> flows_;
  std::vector<uint32_t> doorbells_;
};

}  // namespace sluice::board
