// SPDX-License-Identifier: Apache-2.0
#include "control/source/path_watch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "control/transfer/scenes_for_test.h"

namespace sluice::transfer {
namespace {

constexpr uint64_t kMs = 1'000'000;

// The peer counts probes by their size.
void count(board::FlowState& state, uint64_t length, uint64_t probes) {
  for (auto& packed : state.padded_came) {
    const uint64_t there = packed;
    if (there != 0 && there >> 32 != length) continue;
    packed = length << 32 | ((there & UINT32_MAX) + probes);
    return;
  }
}

// Two lanes, of which one goes over a link that carries 1500 bytes.
class Watching : public ::testing::Test {
 protected:
  Watching() {
    for (auto& slot : slots_) slot = std::make_unique<board::FlowSlot>();
    agreement_.peer_ip[10] = agreement_.peer_ip[11] = 0xFF;
    watch_.begin("beta", agreement_, 2, sizes_, 1);
  }
  // What workers and peer make of a millisecond.
  Status tick(uint32_t narrow_lanes) {
    now_ns_ += kMs;
    for (uint32_t i = 0; i < slots_.size(); ++i) {
      const auto& slot = slots_[i];
      slot->state.chunks += 10;
      slot->state.peer_datagrams += i < narrow_lanes ? 0 : 10;
      slot->state.statuses += 1;
      slot->state.rtt_ns = 5 * kMs;
    }
    Effects out;
    const std::vector<const board::FlowSlot*> lanes{slots_[0].get(), slots_[1].get()};
    Status status = watch_.step({.leg = LegId(3), .lanes = lanes}, sizes_, now_ns_, out);
    for (const Effect& effect : out.drain()) {
      const auto& command = std::get<CommandLane>(effect).command;
      EXPECT_EQ(std::get<CommandLane>(effect).leg, LegId(3));
      EXPECT_EQ(command.kind, board::CommandKind::kSendPadded);
      EXPECT_EQ(command.flow.lane, LaneId(0));
      auto& state = slots_[0]->state;
      if (!probes_leave_) continue;
      state.padded_probes += command.tag;
      if (command.range.length + 100 > 1500) continue;
      count(state, command.range.length, command.tag);
      ++commands_;
    }
    return status;
  }

  Agreement agreement_{.lanes = 2, .chunk_bytes = 8192};
  rate::PathSizes sizes_;
  PathWatch watch_;
  uint64_t now_ns_ = kMs;
  uint32_t commands_ = 0;
  bool probes_leave_ = true;
  std::array<std::unique_ptr<board::FlowSlot>, 2> slots_;
};

TEST_F(Watching, NothingIsAskedOfAGoodPath) {
  for (int i = 0; i < 2000; ++i) ASSERT_TRUE(tick(0));
  EXPECT_EQ(commands_, 0U);
  EXPECT_EQ(sizes_.chunk_bytes("beta", true, now_ns_), 0U);
}

TEST_F(Watching, OneLaneThatIsABlackHoleEndsTheAttemptAndIsRemembered) {
  Status status;
  for (int i = 0; i < 2000 && status; ++i) status = tick(1);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kStalled);
  EXPECT_EQ(
      status.error().message,
      "the path to beta carries datagrams of at most 1500 bytes now, not of 8292: going on with chunks of "
      "1400");
  EXPECT_EQ(sizes_.chunk_bytes("beta", true, now_ns_), 1400U);
  EXPECT_EQ(sizes_.chunk_bytes("beta", false, now_ns_), 0U);
}

TEST_F(Watching, OneLaneSearchesAtATimeAndIsNamedWhileItsProbesWait) {
  probes_leave_ = false;
  for (int i = 0; i < 1000 && !watch_.sending(now_ns_); ++i) ASSERT_TRUE(tick(2));
  EXPECT_EQ(watch_.sending(now_ns_), LaneId(0));
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(tick(2));
  slots_[0]->state.padded_probes += 1000;
  ASSERT_TRUE(tick(2));
  EXPECT_EQ(watch_.sending(now_ns_), std::nullopt) << "they have left";
}

// Probes of eight sizes, 64 of each, over a path that loses by length.
class Measuring : public ::testing::Test {
 protected:
  Status run(bool loses) {
    const auto slot = std::make_unique<board::FlowSlot>();
    const std::vector<const board::FlowSlot*> lanes{slot.get()};
    Status status;
    for (uint64_t now_ns = kMs; now_ns < 2000 * kMs && status; now_ns += kMs) {
      slot->state.statuses += 1;
      slot->state.rtt_ns = kMs;
      Effects out;
      status = watch_.step({.leg = LegId(3), .lanes = lanes}, sizes_, now_ns, out);
      uint32_t place = 0;
      for (const Effect& effect : out.drain()) {
        const auto& command = std::get<CommandLane>(effect).command;
        slot->state.padded_probes += command.tag;
        const double bytes = static_cast<double>(command.range.length + 100);
        const auto came = static_cast<uint64_t>(command.tag * (loses ? std::exp(-bytes / 1500) : 1));
        if (came != 0) slot->state.padded_came[place++] = command.range.length << 32 | came;
        asked_ += command.tag;
      }
    }
    return status;
  }

  Agreement agreement_{.lanes = 1, .chunk_bytes = 8192, .chunk_auto = true};
  rate::PathSizes sizes_;
  PathWatch watch_;
  uint64_t asked_ = 0;
};

TEST_F(Measuring, AShorterChunkThatBringsMoreIsTheNextAttempts) {
  watch_.begin("beta", agreement_, 1, sizes_, 1);
  const Status status = run(true);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kStalled);
  EXPECT_NE(status.error().message.find("which bring"), std::string::npos) << status.error().message;
  const rate::SizeCurve* const curve = sizes_.measured("beta", false, kMs);
  ASSERT_NE(curve, nullptr);
  EXPECT_NEAR(curve->best_chunk_bytes, 390, 100);
  EXPECT_EQ(sizes_.chunk_bytes("beta", false, kMs), 0U) << "the path carries long ones";
  // The next attempt knows.
  asked_ = 0;
  agreement_.chunk_bytes = curve->best_chunk_bytes;
  watch_.begin("beta", agreement_, 1, sizes_, 2);
  EXPECT_TRUE(run(true));
  EXPECT_EQ(asked_, 0U);
}

TEST_F(Measuring, WhereNothingIsLostTheAttemptGoesOn) {
  watch_.begin("beta", agreement_, 1, sizes_, 1);
  EXPECT_TRUE(run(false));
  EXPECT_EQ(asked_, 8 * 64U);
  ASSERT_NE(sizes_.measured("beta", false, kMs), nullptr);
  EXPECT_EQ(sizes_.measured("beta", false, kMs)->best_chunk_bytes, 8192U);
}

TEST_F(Measuring, NobodyMeasuresWhoWasNotAskedTo) {
  agreement_.chunk_auto = false;
  watch_.begin("beta", agreement_, 1, sizes_, 1);
  EXPECT_TRUE(run(true));
  EXPECT_EQ(asked_, 0U);
}

TEST_F(Watching, KnowsHowLongADatagramIsOnTheWire) { EXPECT_EQ(watch_.datagram_bytes(), 8192U + 100 + 38); }

// A whole transfer whose path becomes narrow: the attempt ends with that reason, and the next one fits.
void expect_a_shorter_attempt(test::World& world) {
  bool narrow = true;
  world.on_effect = [&](const Effect& effect) {
    const auto* command = std::get_if<CommandLane>(&effect);
    if (command == nullptr || command->command.kind != board::CommandKind::kSendPadded) return;
    board::FlowState& state = world.flow().state;
    state.padded_probes += command->command.tag;
    const uint64_t length = command->command.range.length;
    if (length + 100 <= 1500) count(state, length, command->command.tag);
  };
  for (int i = 0; i < 2000 && narrow; ++i) {
    world.flow().state.chunks += 10;
    world.flow().state.statuses += 1;
    world.flow().state.rtt_ns = kMs;
    world.flow().state.last_peer_ns = world.now_ns;
    world.pass(kMs);
    narrow = world.leg_phase() == LegPhase::kMoving;
  }
  ASSERT_FALSE(narrow) << "the attempt ends";
  ASSERT_EQ(world.said<Failure>().size(), 1U);
  EXPECT_EQ(world.said<Failure>()[0].code, static_cast<uint32_t>(ErrorCode::kStalled));
  EXPECT_NE(world.said<Failure>()[0].message.find("chunks of 1400"), std::string::npos);
  if (!world.scene.initiator) world.peer_calls();
  world.pass(5 * kSecondNs);
  EXPECT_EQ(world.leg_phase(), LegPhase::kMoving);
  EXPECT_EQ(world.leg().agreement().chunk_bytes, 1400U);
  EXPECT_EQ(world.transfer().view(world.now_ns).chunk_reason, "path");
}

TEST(NarrowPath, ASourceThatCallsOffersWhatThePathCarries) {
  const auto world = test::moving(test::source());
  EXPECT_EQ(world->transfer().view(world->now_ns).chunk_reason, "agreed");
  expect_a_shorter_attempt(*world);
  EXPECT_EQ(world->said<Specification>().back().chunk_bytes_max_ip4, 1400U);
}

TEST(NarrowPath, ASourceThatWasCalledAnswersWithWhatThePathCarries) {
  const auto world = test::moving(test::called(test::source()));
  expect_a_shorter_attempt(*world);
  EXPECT_EQ(world->said<SpecificationSet>().back().chunk_bytes, 1400U);
  EXPECT_EQ(world->said<SpecificationSet>().back().chunk_reason, rate::SizeReason::kPath);
}

// The path from the peer is another one.
TEST(NarrowPath, ADestinationIsNotHeldByWhatItsOwnPathCarries) {
  test::Scene scene = test::destination();
  scene.settings.paths = std::make_shared<rate::Paths>();
  test::World world(scene);
  scene.settings.paths->sizes().set(world.leg().peer_name(), true, 1400, world.now_ns);
  world.start();
  EXPECT_EQ(world.said<Specification>().back().chunk_bytes_max_ip4, 8192U);
}

}  // namespace
}  // namespace sluice::transfer
