// A sending end with two legs to one destination.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>

#include "control/leg/control_stream.h"
#include "control/source/source_end.h"
#include "control/transfer/peer_fixture.h"

namespace sluice::transfer::test {
namespace {

constexpr LegId kOne(0);
constexpr LegId kOther(1);

// Data moves on the first leg, of two files of one extent each.
class SendingOnTwoLegs : public testing::Test {
 protected:
  SendingOnTwoLegs() {
    std::vector<catalog::File> files(
        2, {.name = "f", .shown = "/from/f", .path = "/from/f", .size_bytes = kExtent});
    end_ = std::make_unique<SourceEnd>(std::move(*SourceEnd::make(settings_, agreement_, files)));
    end_->files().reopen(out_);
    EXPECT_TRUE(end_->on(SourcesReopened{}, out_));
    begin(one_);
    for (const ObjectId object : {ObjectId(0), ObjectId(1)})
      EXPECT_TRUE(end_->on(ObjectOpened{.object = object}, out_));
    EXPECT_TRUE(hear(kOne, ObjectState{.end = true}));
    (void)out_.drain();
  }
  void begin(ControlStream& stream) {
    stream.call(out_);
    stream.call_ended(true, 1);
    stream.greeted();
    end_->start_attempt({.peer_name = peer_, .stream = stream, .agreement = agreement_, .lanes = 1}, 1, out_);
  }
  Status hear(LegId leg, const Message& message) { return end_->on_message(leg, message, out_); }
  // The object was sent, and stands at the peer.
  void bring(ObjectId object) {
    board::Event event{
        .kind = board::EventKind::kExtentSent, .object = object.value(), .length = kExtent, .digest = 5};
    EXPECT_TRUE(end_->on(FlowEvent{.leg = kOne, .lane = LaneId(0), .event = event}, out_));
    EXPECT_TRUE(hear(kOne, FileDone{.object = object, .digest = *end_->digests(object).source}));
    EXPECT_TRUE(end_->done(object));
  }
  std::set<LegId> commanded() {
    std::set<LegId> legs;
    for (const Effect& effect : out_.drain())
      if (const auto* command = std::get_if<CommandLane>(&effect)) legs.insert(command->leg);
    return legs;
  }

  ThisNode settings_;
  Agreement agreement_{.lanes = 1,
                       .chunk_bytes = 8192,
                       .extent_bytes = kExtent,
                       .partition_bytes = kExtent,
                       .rate_bps = 1'000'000'000};
  const std::string peer_ = "beta";
  ControlStream one_{kOne};
  ControlStream other_{kOther};
  std::unique_ptr<SourceEnd> end_;
  Effects out_;
};

TEST_F(SendingOnTwoLegs, WhatALegHadGoesOnAnother) {
  begin(other_);
  EXPECT_TRUE(hear(kOther, ObjectState{.end = true}));
  (void)out_.drain();
  end_->leave(kOne, out_);
  EXPECT_EQ(commanded(), std::set<LegId>{kOther});
  EXPECT_TRUE(end_->running());
}

TEST_F(SendingOnTwoLegs, WhatBecomesDoneWhileALegJoinsNeedNotBeListedThere) {
  end_->note_told(kOther);
  bring(ObjectId(0));
  begin(other_);
  EXPECT_TRUE(hear(kOther, ObjectState{.end = true})) << "the list was made before";
}

TEST_F(SendingOnTwoLegs, WhatWasDoneWhenALegJoinsIsListedThereOrLost) {
  bring(ObjectId(0));
  end_->note_told(kOther);
  begin(other_);
  const Status status = hear(kOther, ObjectState{.end = true});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kIntegrity);
}

TEST_F(SendingOnTwoLegs, LegsShareTheRate) {
  EXPECT_EQ(end_->rate(kOne)->cap_bps(), 1'000'000'000U);
  begin(other_);
  end_->limit_rate(0, out_);  // as each tick does
  EXPECT_EQ(end_->rate(kOne)->cap_bps(), 500'000'000U);
  EXPECT_EQ(end_->rate(kOther)->cap_bps(), 500'000'000U);
  end_->leave(kOne, out_);
  end_->limit_rate(0, out_);
  EXPECT_EQ(end_->rate(kOther)->cap_bps(), 1'000'000'000U);
}

TEST_F(SendingOnTwoLegs, EachStreamHearsADigestAndOneLegEndsAlone) {
  begin(other_);
  EXPECT_TRUE(hear(kOther, ObjectState{.end = true}));
  bring(ObjectId(0));
  bring(ObjectId(1));
  EXPECT_TRUE(hear(kOne, SessionDone{}));
  EXPECT_TRUE(end_->peer_ended(kOne));
  EXPECT_FALSE(end_->peer_ended(kOther));
}

}  // namespace
}  // namespace sluice::transfer::test
