// BoardClient tells its users of a board: who hears what while it attaches.
// SPDX-License-Identifier: Apache-2.0
#include "control/attach/client.h"

#include <algorithm>

#include "control/attach/attach_fixture.h"

namespace sluice::attach {
namespace {

class Hearer final : public board::BoardUser {
 public:
  void on_attached(AttachedBoard& /*board*/) override { attached = true; }
  void on_event(const board::Event& /*event*/, const board::FlowState& /*flow*/) override { ++events; }
  void on_tick(uint64_t /*now_ns*/) override {}
  void on_admitted(const board::Admitted& /*what*/) override {}
  void on_board_lost() override { ++lost; }
  void on_claimed(bool adopted) override { claimed = adopted; }

  bool attached = false;
  uint32_t lost = 0;
  bool claimed = false;
  uint32_t events = 0;
};

// A former control had a session whose flow is claimed, and another flow, which nobody goes on with. The
// worker of that one ends it when the test says so.
class ClientTest : public AttachFixture {
 protected:
  static constexpr FlowSlotId kClaimed{0};
  static constexpr FlowSlotId kLeft{1};
  static constexpr uint16_t kPort = 47000;

  ClientTest() : node_(make_node(folder_)), dataplane_(node_.dataplane_socket()) {
    write(kClaimed, 100, 3);
    write(kLeft, 200, 4);
    asio::co_spawn(io_, dataplane_.serve(io_), asio::detached);
    client_->claim(&user_, {.board_generation = 77,
                            .session = SessionSlotId(3),
                            .flows = {{.slot = kClaimed, .local_port = port(kClaimed)}},
                            .flow_ids = {100},
                            .credit_extents = {4}});
    client_->join(&user_);
    client_->start();
    until([this] { return user_.claimed; });
  }
  ~ClientTest() override {
    client_->stop();
    dataplane_.end();
    std::weak_ptr<BoardClient> gone = client_;
    client_.reset();
    until([&] { return gone.expired(); });
  }
  static config::Node make_node(const std::filesystem::path& folder) {
    config::Node node;
    node.directory = folder;
    std::filesystem::create_directories(node.run_dir());
    return node;
  }
  static uint16_t port(FlowSlotId slot) { return static_cast<uint16_t>(kPort + 2 * slot.value()); }
  void write(FlowSlotId slot, uint64_t id, uint32_t session) {
    board::FlowConfig& config = dataplane_.board().flows[slot.value()].config;
    config = {.flow_id = id, .session = session, .local_port = port(slot), .tag = 1};
    config.direction = board::Direction::kRx;
  }
  void say(FlowSlotId slot, board::EventKind kind) {
    ASSERT_TRUE(dataplane_.board().workers[0].events.push({.kind = kind, .flow = slot.value(), .tag = 1}));
  }
  void end_what_is_left() {
    say(kLeft, board::EventKind::kFlowClosed);
    until([this] { return other_.attached; });
  }

  const config::Node node_;
  FakeDataplane dataplane_;
  std::shared_ptr<BoardClient> client_ =
      std::make_shared<BoardClient>(io_, node_, std::make_shared<async::TurnMeter>());
  Hearer user_;
  Hearer other_;
};

TEST_F(ClientTest, ASessionThatBeginsWaitsUntilNothingIsLeft) {
  client_->join(&other_);
  EXPECT_FALSE(other_.attached) << "it could take the slot of a flow that has not ended";
  end_what_is_left();
  EXPECT_TRUE(user_.attached);
}

TEST_F(ClientTest, WhoseClaimWasTakenUsesTheBoardMeanwhile) {
  const auto board = client_->attached();
  ASSERT_TRUE(board);
  EXPECT_TRUE(board->flows().session_has_flows(SessionSlotId(3)));
  say(kClaimed, board::EventKind::kExtentWritten);
  until([this] { return user_.events == 1; });
  board->flows().close_flow(kClaimed);
  client_->join(&other_);
  say(kClaimed, board::EventKind::kFlowClosed);
  end_what_is_left();
  EXPECT_EQ(user_.events, 2U);
}

// A session may end within these moments.
TEST_F(ClientTest, WhoLeavesMeanwhileHearsNoMore) {
  client_->leave(&user_);
  client_->join(&other_);
  say(kClaimed, board::EventKind::kExtentWritten);
  end_what_is_left();
  EXPECT_EQ(user_.events, 0U);
  EXPECT_FALSE(user_.attached);
  EXPECT_EQ(dataplane_.board().flows[kClaimed.value()].config.flow_id, 100U) << "its worker still has it";
}

TEST_F(ClientTest, ADataplaneThatEndsMeanwhileIsToldOnce) {
  dataplane_.end();
  until([this] { return user_.lost != 0; });
  EXPECT_FALSE(client_->attached());
  client_->join(&other_);
  EXPECT_FALSE(other_.attached);
  EXPECT_EQ(user_.lost, 1U);
}

}  // namespace
}  // namespace sluice::attach
