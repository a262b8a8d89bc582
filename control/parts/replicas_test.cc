// SPDX-License-Identifier: Apache-2.0
#include "control/parts/replicas.h"

#include <gtest/gtest.h>

namespace sluice::parts {
namespace {

constexpr uint32_t kPart = 65536;
constexpr ObjectId kShared{5};
constexpr LegId kOne{0};
constexpr LegId kTwo{1};
constexpr LegId kThree{2};

class ReplicasTest : public testing::Test {
 protected:
  ReplicasTest() {
    replicas.join(kOne, "alpha");
    replicas.join(kTwo, "beta");
  }
  // Answers each question with the digest that `digest_of` gives.
  template <typename Digest>
  void answer(LegId leg, const Replicas::Actions& asked, Digest digest_of) {
    for (const Portion& question : asked.questions) {
      if (question.leg != leg) continue;
      for (const Range& range : question.ranges) {
        const uint64_t digest = digest_of(range.offset / kPart);
        replicas.said(leg, question.object, ExtentId(range.offset / kPart), std::span(&digest, 1));
      }
    }
  }
  static uint64_t right(uint64_t extent) { return 1000 + extent; }

  Replicas replicas{{.seed = 42, .extent_bytes = kPart}};
  Replicas::Subject subject{
      .object = kShared, .size_bytes = 100 * kPart - 1, .name = "data/x", .begun_by = kOne, .held = {}};
};

TEST_F(ReplicasTest, ThreeExtentsAreAskedOfEachLeg) {
  replicas.compare(subject);
  const Replicas::Actions actions = replicas.take_actions();
  ASSERT_EQ(actions.questions.size(), 2U);
  ASSERT_EQ(actions.questions[0].ranges.size(), 3U);
  EXPECT_EQ(actions.questions[0].ranges.front(), (Range{.offset = 0, .length = kPart}));
  EXPECT_EQ(actions.questions[0].ranges.back(), (Range{.offset = 99 * kPart, .length = kPart - 1}));
  EXPECT_EQ(actions.questions[0].ranges, actions.questions[1].ranges);
  // Another seed chooses another one.
  EXPECT_NE(Replicas({.seed = 43, .extent_bytes = kPart}).extents_of(subject), replicas.extents_of(subject));
  replicas.compare(subject);
  EXPECT_TRUE(replicas.take_actions().questions.empty());
}

TEST_F(ReplicasTest, ALegAgreesOnceItSaysTheSameAsTheOneThatHasBegun) {
  replicas.compare(subject);
  const Replicas::Actions asked = replicas.take_actions();
  answer(kTwo, asked, right);
  EXPECT_TRUE(replicas.take_actions().agreed.empty());  // nobody knows yet what the first one says
  answer(kOne, asked, right);
  Replicas::Actions actions = replicas.take_actions();
  EXPECT_EQ(actions.agreed.size(), 2U);
  EXPECT_TRUE(actions.disagreements.empty());
  // So does one that comes late.
  replicas.join(kThree, "gamma");
  actions = replicas.take_actions();
  ASSERT_EQ(actions.questions.size(), 1U);
  answer(kThree, actions, right);
  actions = replicas.take_actions();
  ASSERT_EQ(actions.agreed.size(), 1U);
  EXPECT_EQ(actions.agreed[0].leg, kThree);
}

TEST_F(ReplicasTest, TwoThatDifferAreBothNamed) {
  replicas.compare(subject);
  const Replicas::Actions asked = replicas.take_actions();
  answer(kOne, asked, right);
  answer(kTwo, asked, [](uint64_t extent) { return extent == 99 ? 1 : right(extent); });
  const Replicas::Actions actions = replicas.take_actions();
  ASSERT_EQ(actions.disagreements.size(), 1U);
  EXPECT_EQ(actions.disagreements[0].leg, kTwo);
  EXPECT_EQ(actions.disagreements[0].other, kOne);
  EXPECT_NE(actions.disagreements[0].message.find("data/x at alpha and at beta differ"), std::string::npos);
}

TEST_F(ReplicasTest, WhatIsHeldSaysWhichOneIsWrong) {
  subject.held = Replicas::Held{.extent = ExtentId(17), .crc = right(17)};
  replicas.compare(subject);
  const Replicas::Actions asked = replicas.take_actions();
  ASSERT_EQ(asked.questions[0].ranges.size(), 4U);
  // Even if it is the one that has begun.
  answer(kOne, asked, [](uint64_t extent) { return right(extent) + 1; });
  answer(kTwo, asked, right);
  const Replicas::Actions actions = replicas.take_actions();
  ASSERT_EQ(actions.disagreements.size(), 1U);
  EXPECT_EQ(actions.disagreements[0].leg, kOne);
  EXPECT_FALSE(actions.disagreements[0].other);
  ASSERT_EQ(actions.agreed.size(), 1U);
  EXPECT_EQ(actions.agreed[0].leg, kTwo);
}

TEST_F(ReplicasTest, ALegThatIsGoneIsNotWaitedFor) {
  replicas.compare(subject);
  const Replicas::Actions asked = replicas.take_actions();
  answer(kTwo, asked, right);
  EXPECT_TRUE(replicas.take_actions().agreed.empty());
  replicas.leave(kOne);
  EXPECT_EQ(replicas.take_actions().agreed.size(), 1U);
  // It is asked again once it is back.
  replicas.join(kOne, "alpha");
  const Replicas::Actions again = replicas.take_actions();
  ASSERT_EQ(again.questions.size(), 1U);
  answer(kOne, again, [](uint64_t extent) { return right(extent) + 1; });
  EXPECT_EQ(replicas.take_actions().disagreements.size(), 1U);
}

// The leg that has begun dies before it answers. What it has brought speaks for it.
TEST_F(ReplicasTest, WhatALegHasBroughtSpeaksForIt) {
  replicas.compare(subject);
  const Replicas::Actions asked = replicas.take_actions();
  replicas.confirmed(kShared, {.extent = ExtentId(0), .crc = right(0)});
  replicas.leave(kOne);
  answer(kTwo, asked, [](uint64_t extent) { return right(extent) + 1; });
  Replicas::Actions actions = replicas.take_actions();
  EXPECT_TRUE(actions.agreed.empty());
  ASSERT_EQ(actions.disagreements.size(), 1U);
  EXPECT_EQ(actions.disagreements[0].leg, kTwo);
}

TEST_F(ReplicasTest, IfNothingThatIsComparedCameSomethingElseIs) {
  const std::vector<ExtentId> compared = replicas.extents_of(subject);
  const ExtentId other = compared[1].plus(1);
  replicas.compare(subject);
  const Replicas::Actions asked = replicas.take_actions();
  replicas.confirmed(kShared, {.extent = other, .crc = right(other.value())});
  answer(kTwo, asked, right);
  replicas.leave(kOne);
  Replicas::Actions actions = replicas.take_actions();
  EXPECT_TRUE(actions.agreed.empty());
  ASSERT_EQ(actions.questions.size(), 1U);
  EXPECT_EQ(actions.questions[0].ranges,
            (std::vector<Range>{{.offset = other.value() * kPart, .length = kPart}}));
  answer(kTwo, actions, right);
  EXPECT_EQ(replicas.take_actions().agreed.size(), 1U);
}

// A source ends a session in which more than 64 extents are asked for at a time.
TEST_F(ReplicasTest, NoMoreThanTheMostIsAskedAtATime) {
  std::map<LegId, size_t> open;
  size_t agreed = 0;
  for (uint32_t object = 0; object < 200; ++object) {
    subject.object = ObjectId(object);
    replicas.compare(subject);
  }
  for (;;) {
    const Replicas::Actions actions = replicas.take_actions();
    agreed += actions.agreed.size();
    if (actions.questions.empty()) break;
    for (const Portion& question : actions.questions) open[question.leg] += question.ranges.size();
    for (const auto& [leg, extents] : open) ASSERT_LE(extents, Replicas::kQuestionsMax);
    answer(kOne, actions, right);
    answer(kTwo, actions, right);
    open.clear();
  }
  EXPECT_EQ(agreed, 400U);
}

TEST_F(ReplicasTest, WordsThatNobodyAskedForAreIgnored) {
  const std::vector<uint64_t> digests(10, 1);
  replicas.said(kOne, kShared, ExtentId(0), digests);
  replicas.said(LegId(9), kShared, ExtentId(0), digests);
  replicas.compare(subject);
  replicas.take_actions();
  replicas.said(LegId(9), kShared, ExtentId(0), digests);
  replicas.said(kOne, kShared, ExtentId(UINT64_MAX), digests);
  replicas.remove(kShared);
  replicas.said(kOne, kShared, ExtentId(0), digests);
  const Replicas::Actions actions = replicas.take_actions();
  EXPECT_TRUE(actions.agreed.empty() && actions.disagreements.empty());
}

TEST_F(ReplicasTest, AnEmptyOrTinyObjectIsComparedWhole) {
  subject.size_bytes = 1;
  EXPECT_EQ(replicas.extents_of(subject).size(), 1U);
  subject.size_bytes = 0;
  EXPECT_TRUE(replicas.extents_of(subject).empty());
}

}  // namespace
}  // namespace sluice::parts
