// The flows of a leg on a board whose dataplane the test plays: each effect is answered once, with a
// dataplane or without one, and no slot is used that was given back.
// SPDX-License-Identifier: Apache-2.0
#include "control/runtime/leg_flows.h"

#include "control/runtime/board_objects.h"
#include "control/runtime/runtime_fixture.h"

namespace sluice::runtime {
namespace {

using board::AttachKind;
using board::CommandKind;

const std::string kFlowsSession(32, 'c');
constexpr transfer::LegId kFirst(0);

class LegFlowsTest : public RuntimeTest {
 protected:
  LegFlowsTest() {
    serve();
    stream_ = std::make_unique<LegStream>(services_, heard_, kFirst, "beta");
    objects_ = std::make_unique<BoardObjects>(services_, heard_, nullptr);
    flows_ = std::make_unique<LegFlows>(services_, heard_, kFirst, kFlowsSession, *stream_, *objects_);
  }
  ~LegFlowsTest() override {
    flows_.reset();
    objects_.reset();
    stream_.reset();
  }
  void join() {
    flows_->join();
    objects_->join();
  }
  // The peer's call is the leg's stream: flows get their secrets from it.
  void have_stream() {
    connection_ = std::make_shared<FakeConnection>(io_, identity::Peer{.name = "beta"});
    stream_->peer_called(connection_, transfer::Hello{});
    stream_->perform(transfer::TakeCall{});
  }
  void reserve(uint32_t lanes) {
    flows_->perform(transfer::ReserveFlows{
        .leg = kFirst, .direction = board::Direction::kRx, .lanes = lanes, .may_wait = false});
    ASSERT_TRUE(heard_->count<transfer::FlowsReserved>() != 0);
    reserved_ = heard_->all<transfer::FlowsReserved>().back();
    ASSERT_TRUE(reserved_.status) << reserved_.status.error().message;
    flows_->perform(transfer::ReserveBuffers{.leg = kFirst, .direction = board::Direction::kRx});
    ASSERT_EQ(heard_->all<transfer::BuffersReserved>().back().credit_extents.size(), lanes);
  }
  void open(uint32_t lane, uint64_t flow_id) {
    transfer::OpenFlow effect{.leg = kFirst, .lane = LaneId(lane), .config = {}};
    effect.config.flow_id = flow_id;
    effect.config.direction = board::Direction::kRx;
    effect.config.local_port = reserved_.grants.at(lane).local_port;
    flows_->perform(effect);
  }
  // What the workers find in their rings now, taken out.
  std::vector<board::Command> commands() {
    std::vector<board::Command> all;
    for (uint32_t worker = 0; worker < 2; ++worker) {
      for (board::Command command; dataplane_->board().workers[worker].commands.pop(&command);)
        all.push_back(command);
    }
    return all;
  }
  std::vector<board::Command> commands_after(const std::function<bool()>& condition) {
    run_until(condition);
    settle();
    return commands();
  }
  void say(FlowSlotId slot, board::EventKind kind) {
    const board::FlowConfig& config = dataplane_->board().flows[slot.value()].config;
    const uint32_t worker = (config.local_port - 47000U) % 2;
    ASSERT_TRUE(dataplane_->board().workers[worker].events.push(
        {.kind = kind, .flow = slot.value(), .tag = config.tag}));
  }

  const std::shared_ptr<HeardEvents> heard_ = std::make_shared<HeardEvents>();
  std::shared_ptr<FakeConnection> connection_;
  std::unique_ptr<LegStream> stream_;
  std::unique_ptr<BoardObjects> objects_;
  std::unique_ptr<LegFlows> flows_;
  transfer::FlowsReserved reserved_;
};

TEST_F(LegFlowsTest, WithoutADataplaneEachEffectIsAnsweredAtOnceAndOnce) {
  join();
  flows_->perform(transfer::ReserveFlows{.leg = kFirst, .lanes = 1});
  flows_->perform(transfer::ReserveBuffers{.leg = kFirst});
  objects_->perform(transfer::OpenObject{.object = ObjectId(4)});
  objects_->perform(transfer::CloseObject{ObjectId(4)});
  objects_->perform(transfer::FetchObject{ObjectId(4)});
  flows_->perform(transfer::DrainEvents{kFirst});
  flows_->perform(transfer::ReleaseFlows{kFirst});
  EXPECT_EQ(heard_->events.size(), 7U);
  ASSERT_EQ(heard_->count<transfer::FlowsReserved>(), 1U);
  EXPECT_EQ(heard_->all<transfer::FlowsReserved>()[0].status.error().code, ErrorCode::kDaemonNotRunning);
  ASSERT_EQ(heard_->count<transfer::BuffersReserved>(), 1U);
  EXPECT_EQ(heard_->all<transfer::BuffersReserved>()[0].status.error().code, ErrorCode::kDaemonNotRunning);
  ASSERT_EQ(heard_->count<transfer::ObjectOpened>(), 1U);
  EXPECT_EQ(heard_->all<transfer::ObjectOpened>()[0].status.error().code, ErrorCode::kDaemonNotRunning);
  EXPECT_EQ(heard_->count<transfer::ObjectClosed>(), 1U);
  EXPECT_EQ(heard_->count<transfer::ObjectFetched>(), 1U);
  EXPECT_EQ(heard_->count<transfer::EventsDrained>(), 1U);
  EXPECT_EQ(heard_->count<transfer::FlowsReleased>(), 1U);
  // Of lanes that there are not nothing is heard.
  flows_->perform(transfer::CloseFlow{.leg = kFirst, .lane = LaneId(0)});
  flows_->perform(transfer::SetRate{.leg = kFirst, .lane = LaneId(0), .rate_bps = 1});
  EXPECT_EQ(heard_->events.size(), 7U);
}

TEST_F(LegFlowsTest, FlowsAreReservedOpenedHeardOfAndGivenBack) {
  attach();
  join();
  run_until([this] { return heard_->count<transfer::BoardAttached>() == 1; });
  EXPECT_EQ(heard_->all<transfer::BoardAttached>()[0].dataplane.generation, 77U);
  reserve(2);
  ASSERT_EQ(reserved_.grants.size(), 2U);
  EXPECT_NE(reserved_.grants[0].random, reserved_.grants[1].random);
  open(0, 10);
  open(1, 11);
  const auto both = [this] {
    uint32_t waiting = 0;
    for (uint32_t worker = 0; worker < 2; ++worker)
      waiting += dataplane_->board().workers[worker].commands.empty() ? 0 : 1;
    return waiting == 2;
  };
  const std::vector<board::Command> opened = commands_after(both);
  ASSERT_EQ(opened.size(), 2U);
  for (const board::Command& command : opened) {
    EXPECT_EQ(command.kind, CommandKind::kOpenFlow);
    EXPECT_EQ(dataplane_->board().flows[command.flow].config.session, reserved_.session.value());
  }
  say(reserved_.grants[1].slot, board::EventKind::kFlowOpened);
  run_until([this] { return heard_->count<transfer::FlowEvent>() == 1; });
  EXPECT_EQ(heard_->all<transfer::FlowEvent>()[0].lane, LaneId(1));
  run_until([this] { return heard_->count<transfer::Tick>() != 0; });
  for (const transfer::Grant& grant : reserved_.grants) say(grant.slot, board::EventKind::kFlowClosed);
  run_until([this] { return heard_->count<transfer::FlowEvent>() == 3; });
  flows_->perform(transfer::ReleaseFlows{kFirst});
  run_until([this] { return heard_->count<transfer::FlowsReleased>() == 1; });
  EXPECT_EQ(dataplane_->requests.back().kind, AttachKind::kCloseSession);
  EXPECT_FALSE(services_->board->attached()->flows().table().session_taken(reserved_.session));
  EXPECT_TRUE(flows_->lanes().empty());
}

// The keys go to the dataplane's main thread, the command to the worker: it must come second.
TEST_F(LegFlowsTest, AFlowIsOpenedWhenItsKeysAreThereAndNotBefore) {
  attach();
  join();
  have_stream();
  reserve(1);
  dataplane_->hold_at = AttachKind::kFlowKeys;
  open(0, 10);
  EXPECT_TRUE(commands_after([this] { return dataplane_->held.has_value(); }).empty());
  EXPECT_EQ(dataplane_->requests.back().secret[0], 7);
  // Closed meanwhile: both come then, in this order.
  flows_->perform(transfer::CloseFlow{.leg = kFirst, .lane = LaneId(0)});
  EXPECT_TRUE(commands().empty());
  dataplane_->answer_held();
  const uint32_t worker = (reserved_.grants[0].local_port - 47000U) % 2;
  std::vector<board::Command> got;
  run_until([&] {
    for (board::Command command; dataplane_->board().workers[worker].commands.pop(&command);)
      got.push_back(command);
    return got.size() == 2;
  });
  EXPECT_EQ(got[0].kind, CommandKind::kOpenFlow);
  EXPECT_EQ(got[1].kind, CommandKind::kCloseFlow);
}

// A dataplane may take longer to answer than flows are waited for. By then their slots may be somebody
// else's.
TEST_F(LegFlowsTest, AnOpeningThatWasGivenUpOpensNothing) {
  attach();
  join();
  have_stream();
  reserve(1);
  const FlowSlotId first = reserved_.grants[0].slot;
  dataplane_->hold_at = AttachKind::kFlowKeys;
  open(0, 10);
  run_until([this] { return dataplane_->held.has_value(); });
  flows_->perform(transfer::ReleaseFlows{kFirst});
  // The slots are given back; that the session is closed is asked after the keys.
  const auto taken = services_->board->attached()->flows().table().take_flows(1);
  ASSERT_TRUE(taken);
  ASSERT_EQ(taken->front().slot, first) << "somebody else has it now";
  // The leg begins anew, with the same lane on another slot.
  reserve(1);
  ASSERT_NE(reserved_.grants[0].slot, first);
  open(0, 20);
  dataplane_->answer_held();
  std::vector<board::Command> got;
  run_until([&] {
    for (const board::Command& command : commands()) got.push_back(command);
    return heard_->count<transfer::FlowsReleased>() == 1 && !got.empty();
  });
  settle();
  for (const board::Command& command : commands()) got.push_back(command);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0].kind, CommandKind::kOpenFlow);
  EXPECT_EQ(got[0].flow, reserved_.grants[0].slot.value());
  EXPECT_EQ(dataplane_->board().flows[first.value()].config.flow_id, 0U) << "nothing was opened on it";
}

TEST_F(LegFlowsTest, ABoardThatIsLostAnswersWhatWasAskedAndIsToldOnce) {
  attach();
  join();
  run_until([this] { return heard_->count<transfer::BoardAttached>() == 1; });
  std::vector<SessionSlotId> all;
  while (const auto slot = services_->board->attached()->flows().table().take_session()) all.push_back(*slot);
  flows_->perform(transfer::ReserveFlows{
      .leg = kFirst, .direction = board::Direction::kRx, .lanes = 1, .may_wait = true});
  settle();
  EXPECT_EQ(heard_->count<transfer::FlowsReserved>(), 0U) << "it waits for a slot";
  dataplane_->end();
  run_until([this] { return heard_->count<transfer::BoardLost>() != 0; });
  ASSERT_EQ(heard_->count<transfer::FlowsReserved>(), 1U);
  EXPECT_EQ(heard_->all<transfer::FlowsReserved>()[0].status.error().code, ErrorCode::kDaemonNotRunning);
  EXPECT_EQ(heard_->count<transfer::BoardLost>(), 1U);
  flows_->perform(transfer::ReleaseFlows{kFirst});
  EXPECT_EQ(heard_->count<transfer::FlowsReleased>(), 1U);
}

TEST_F(LegFlowsTest, FlowsOfAFormerControlAreClaimedOnceOrNotAtAll) {
  dataplane_ = std::make_unique<attach::FakeDataplane>(node_.dataplane_socket());
  board::FlowConfig& config = dataplane_->board().flows[3].config;
  config = {.flow_id = 100, .session = 5, .local_port = 47006, .tag = 1};
  config.direction = board::Direction::kRx;
  transfer::LegRecord record{.peer = "beta", .agreement = {}, .flows = {}, .board_generation = 77};
  record.board_session = SessionSlotId(5);
  record.flows = {{.slot = FlowSlotId(3), .flow_id = 100, .credit_extents = 4, .local_port = 47006}};
  flows_->perform(transfer::ClaimFlows{.leg = kFirst, .record = record, .receives = true});
  EXPECT_TRUE(heard_->events.empty()) << "until a dataplane is there";
  asio::co_spawn(io_, dataplane_->serve(io_), asio::detached);
  join();
  services_->board->start();
  run_until([this] { return heard_->count<transfer::FlowsClaimed>() != 0; });
  EXPECT_TRUE(heard_->all<transfer::FlowsClaimed>()[0].adopted);
  EXPECT_EQ(flows_->lanes().size(), 1U);
  flows_->perform(transfer::DropClaim{kFirst});
  EXPECT_EQ(heard_->count<transfer::FlowsClaimed>(), 1U) << "it was answered";
}

TEST_F(LegFlowsTest, AClaimThatIsDroppedIsAnsweredAtOnce) {
  transfer::LegRecord record{.peer = "beta", .agreement = {}, .flows = {{.flow_id = 100}}};
  flows_->perform(transfer::ClaimFlows{.leg = kFirst, .record = record});
  flows_->perform(transfer::DropClaim{kFirst});
  ASSERT_EQ(heard_->count<transfer::FlowsClaimed>(), 1U);
  EXPECT_FALSE(heard_->all<transfer::FlowsClaimed>()[0].adopted);
}

}  // namespace
}  // namespace sluice::runtime
