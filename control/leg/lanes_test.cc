// SPDX-License-Identifier: Apache-2.0
#include "control/leg/lanes.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace sluice::transfer {
namespace {

constexpr LegId kLeg(0);

Agreement agreement_of(uint32_t lanes) {
  Agreement agreement{.lanes = lanes,
                      .chunk_bytes = 8192,
                      .extent_bytes = 65536,
                      .partition_bytes = 1U << 20,
                      .rate_bps = 8'000'000'000};
  agreement.local_ip[15] = 1;
  agreement.peer_ip[15] = 2;
  for (uint32_t i = 0; i < lanes; ++i) agreement.peer_ports.push_back(static_cast<uint16_t>(9000 + i));
  return agreement;
}

FlowEvent event_of(board::EventKind kind, uint32_t lane, uint64_t value = 0) {
  return {.leg = kLeg, .lane = LaneId(lane), .event = {.kind = kind, .value = value}};
}

class Lanes : public testing::Test {
 protected:
  template <typename E>
  std::vector<E> asked() {
    std::vector<E> found;
    for (const Effect& effect : out_.drain()) {
      if (const E* each = std::get_if<E>(&effect)) found.push_back(*each);
    }
    return found;
  }
  void reserve(uint32_t lanes) {
    std::vector<Grant> grants;
    for (uint32_t i = 0; i < lanes; ++i) {
      grants.push_back({.slot = FlowSlotId(10 + i),
                        .local_port = static_cast<uint16_t>(5000 + i),
                        .random = 0xABCDEF + i});
    }
    lanes_.reserved(SessionSlotId(3), grants);
  }
  void open(uint32_t lanes, Role role = Role::kSource) {
    reserve(lanes);
    lanes_.invent_names();
    lanes_.open(agreement_of(lanes), role, out_);
    for (uint32_t i = 0; i < lanes; ++i) lanes_.on(event_of(board::EventKind::kFlowOpened, i));
  }

  LaneSet lanes_{kLeg};
  Effects out_;
};

TEST_F(Lanes, AreOpenedAsAgreedEachToItsPort) {
  reserve(2);
  lanes_.credited({4, 5});
  lanes_.name_flows({77, 78});
  lanes_.open(agreement_of(2), Role::kDestination, out_);
  EXPECT_FALSE(lanes_.all_open());
  const std::vector<OpenFlow> flows = asked<OpenFlow>();
  ASSERT_EQ(flows.size(), 2U);
  const board::FlowConfig& second = flows[1].config;
  EXPECT_EQ(flows[1].lane, LaneId(1));
  EXPECT_EQ(second.flow_id, 78U);
  EXPECT_EQ(second.session, 3U);
  EXPECT_EQ(second.local_port, 5001);
  EXPECT_EQ(second.peer_port, 9001);
  EXPECT_EQ(second.credit_extents, 5U);
  EXPECT_EQ(second.direction, board::Direction::kRx);
  EXPECT_EQ(second.rate_bps, 400'000'000U) << "the ramp begins at a tenth of its share";
  EXPECT_EQ(second.local_ip[15], 1);
  EXPECT_EQ(second.peer_ip[15], 2);
  lanes_.on(event_of(board::EventKind::kFlowOpened, 0));
  EXPECT_FALSE(lanes_.all_open());
  lanes_.on(event_of(board::EventKind::kFlowOpened, 1));
  EXPECT_TRUE(lanes_.all_open());
  EXPECT_TRUE(lanes_.refused());
}

TEST_F(Lanes, NamesTellTheSlotAndAreUnlikeThoseOfAFormerLife) {
  reserve(2);
  lanes_.invent_names();
  const std::vector<uint64_t> first = lanes_.flow_ids();
  EXPECT_EQ(first[0] & 0xFFFF, 10U);
  EXPECT_EQ(first[1] & 0xFFFF, 11U);
  EXPECT_NE(first[0] >> 16, first[1] >> 16);
  EXPECT_NE(first[0], 0U);
}

TEST_F(Lanes, TheReasonOfARefusalDecidesWhetherItIsTriedAgain) {
  const auto refusal = [this](uint64_t reason) {
    lanes_.drop();
    reserve(1);
    lanes_.open(agreement_of(1), Role::kSource, out_);
    lanes_.on(event_of(board::EventKind::kFlowOpened, 0, reason));
    return lanes_.refused().error();
  };
  EXPECT_EQ(refusal(EADDRINUSE).code, ErrorCode::kResources);
  EXPECT_NE(refusal(EADDRINUSE).message.find("5000"), std::string::npos) << "names the port";
  EXPECT_EQ(refusal(EADDRNOTAVAIL).code, ErrorCode::kResources);
  EXPECT_EQ(refusal(ENETUNREACH).code, ErrorCode::kPeerUnreachable);
  EXPECT_EQ(refusal(EPERM).code, ErrorCode::kDevice);
  EXPECT_EQ(refusal(ENOBUFS).code, ErrorCode::kResources);
  EXPECT_EQ(refusal(ENOKEY).code, ErrorCode::kPeerUnreachable) << "the connection that had its keys is gone";
}

TEST_F(Lanes, OneThatIsRefusedIsAnErrorAndIsClosedLikeTheOthers) {
  reserve(2);
  lanes_.open(agreement_of(2), Role::kSource, out_);
  lanes_.on(event_of(board::EventKind::kFlowOpened, 0));
  lanes_.on(event_of(board::EventKind::kFlowOpened, 1, EINVAL));
  EXPECT_EQ(lanes_.refused().error().code, ErrorCode::kInternal);
  EXPECT_FALSE(lanes_.all_open());
  (void)asked<OpenFlow>();
  lanes_.close(out_);
  EXPECT_EQ(asked<CloseFlow>().size(), 2U) << "its slot is given back when the worker says so";
  EXPECT_TRUE(lanes_.on(event_of(board::EventKind::kFlowClosed, 0)));
  EXPECT_FALSE(lanes_.all_closed());
  EXPECT_TRUE(lanes_.on(event_of(board::EventKind::kFlowClosed, 1)));
  EXPECT_TRUE(lanes_.all_closed());
}

TEST_F(Lanes, ThatWereOnlyReservedNeedNoClosing) {
  reserve(3);
  lanes_.close(out_);
  EXPECT_TRUE(asked<CloseFlow>().empty());
  EXPECT_TRUE(lanes_.all_closed());
}

TEST_F(Lanes, AClosingThatNobodyHereAskedForIsTold) {
  open(2);
  EXPECT_FALSE(lanes_.on(event_of(board::EventKind::kFlowClosed, 1)));
  EXPECT_FALSE(lanes_.all_open());
  EXPECT_EQ(lanes_.records().size(), 1U) << "only those that are open can be gone on with";
  EXPECT_TRUE(lanes_.on(event_of(board::EventKind::kFlowClosed, 99))) << "no lane of ours";
}

TEST_F(Lanes, AreShrunkFromTheEnd) {
  reserve(4);
  lanes_.shrink(4, out_);
  EXPECT_TRUE(out_.empty());
  lanes_.shrink(1, out_);
  const std::vector<ShrinkLanes> shrunk = asked<ShrinkLanes>();
  ASSERT_EQ(shrunk.size(), 1U);
  EXPECT_EQ(shrunk[0].lanes, 1U);
  EXPECT_EQ(lanes_.local_ports(), std::vector<uint16_t>{5000});
  lanes_.shrink(0, out_);
  EXPECT_TRUE(lanes_.empty());
}

TEST_F(Lanes, AreTheSameFlowsOnlyWhileAllAreOpenAndNamedSo) {
  EXPECT_FALSE(lanes_.same_flows({})) << "none are no flows";
  open(2);
  const std::vector<uint64_t> ids = lanes_.flow_ids();
  EXPECT_TRUE(lanes_.same_flows(ids));
  EXPECT_FALSE(lanes_.same_flows({ids[1], ids[0]}));
  EXPECT_FALSE(lanes_.same_flows({ids[0]}));
  lanes_.on(event_of(board::EventKind::kFlowClosed, 0));
  EXPECT_FALSE(lanes_.same_flows(ids));
}

TEST_F(Lanes, ComeBackFromTheJournalAsTheyWere) {
  open(2);
  LegRecord record;
  record.flows = lanes_.records();
  record.board_session = lanes_.session();
  LaneSet restored(kLeg);
  restored.restore(record);
  EXPECT_TRUE(restored.all_open());
  EXPECT_TRUE(restored.same_flows(lanes_.flow_ids()));
  EXPECT_EQ(restored.session(), SessionSlotId(3));
  EXPECT_EQ(restored.local_ports(), lanes_.local_ports());
}

TEST_F(Lanes, FiguresOutliveTheirFlowsAndTheirAttempt) {
  open(1);
  const auto slot = std::make_unique<board::FlowSlot>();
  slot->state.bytes = 1000;
  const board::FlowSlot* const slots[] = {slot.get()};
  lanes_.read({.leg = kLeg, .lanes = slots});
  EXPECT_EQ(lanes_.figures().bytes, 1000U);
  slot->state.bytes = 1500;
  lanes_.close(out_);
  FlowEvent closed = event_of(board::EventKind::kFlowClosed, 0);
  closed.state = &slot->state;
  EXPECT_TRUE(lanes_.on(closed));
  EXPECT_EQ(lanes_.figures().bytes, 1500U);
  lanes_.drop();
  EXPECT_EQ(lanes_.figures().bytes, 0U);
  EXPECT_EQ(lanes_.all_figures().bytes, 1500U);
  open(1);
  slot->state.bytes = 10;
  lanes_.read({.leg = kLeg, .lanes = slots});
  EXPECT_EQ(lanes_.all_figures().bytes, 1510U);
}

TEST_F(Lanes, CreditOfMoreOrFewerLanesThanThereAreIsCut) {
  reserve(2);
  lanes_.credited({7});
  EXPECT_EQ(lanes_.credit_extents(), (std::vector<uint32_t>{7, 0}));
  lanes_.credited({1, 2, 3});
  EXPECT_EQ(lanes_.credit_extents(), (std::vector<uint32_t>{1, 2}));
}

}  // namespace
}  // namespace sluice::transfer
