// What a destination of several sources asks of each, and what it counts.
// SPDX-License-Identifier: Apache-2.0
#include "control/destination/several_sources.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace sluice::transfer {
namespace {

constexpr uint64_t kExtentBytes = 65536;
constexpr LegId kAlpha(0);
constexpr LegId kBeta(1);
constexpr ObjectId kObject(0);

uint64_t digest_of(ExtentId extent) { return 1000 + extent.value(); }

// Sources that bring what they are asked for, at once.
class SeveralSourcesTest : public testing::Test {
 protected:
  void join(LegId leg, const std::string& peer) {
    several_.join({.leg = leg, .peer = peer, .rtt_ns = 1'000'000, .lanes = 1}, now_ns_);
  }
  void add(uint64_t extents, bool whole = false) {
    several_.add({.id = kObject, .size_bytes = extents * kExtentBytes, .whole = whole, .shown = "/in/file"},
                 {});
  }
  SeveralSources::Actions tick() {
    now_ns_ += 1'000'000;
    for (const LegId leg : {kAlpha, kBeta}) tick(leg, {.up = true, .heard_ns = now_ns_});
    return several_.take_actions();
  }
  void tick(LegId leg, SeveralSources::Sign sign) {
    sign.bytes = came_[leg.value()];
    several_.tick(leg, sign, now_ns_);
  }
  // Alpha speaks, and nothing new comes of beta. What becomes whole meanwhile.
  std::vector<ObjectId> whole_within(uint64_t ns, bool up) {
    const uint64_t heard_ns = now_ns_;
    for (const uint64_t until_ns = now_ns_ + ns; now_ns_ < until_ns;) {
      now_ns_ += 10'000'000;
      tick(kAlpha, {.up = true, .heard_ns = now_ns_});
      tick(kBeta, {.up = up, .heard_ns = heard_ns});
    }
    return several_.take_actions().whole;
  }
  static std::vector<ExtentId> extents_of(const std::vector<recovery::Range>& ranges) {
    std::vector<ExtentId> extents;
    for (const recovery::Range& range : ranges)
      for (uint64_t at = range.offset; at < range.end(); at += kExtentBytes)
        extents.emplace_back(at / kExtentBytes);
    return extents;
  }
  template <typename Word>
  static std::vector<ExtentId> asked(const SeveralSources::Actions& actions, LegId leg) {
    std::vector<ExtentId> extents;
    for (const SeveralSources::Word& word : actions.words) {
      const auto* const its = std::get_if<Word>(&word.message);
      if (its == nullptr || word.leg != leg) continue;
      for (const ExtentId extent : extents_of(its->ranges)) extents.push_back(extent);
    }
    return extents;
  }
  void write(LegId leg, ExtentId extent) {
    came_[leg.value()] += kExtentBytes;
    several_.written(leg, {.kind = board::EventKind::kExtentWritten,
                           .object = kObject.value(),
                           .offset = extent.value() * kExtentBytes,
                           .length = kExtentBytes,
                           .digest = digest_of(extent)});
  }
  bool say(LegId leg, ExtentId extent, uint64_t digest) {
    return several_.said(leg,
                         {.object = kObject, .offset = extent.value() * kExtentBytes, .digests = {digest}});
  }
  // Until nothing is asked any more: the object is whole.
  std::vector<board::Event> bring_all(size_t extents) {
    std::vector<board::Event> written;
    for (int i = 0; i < 1000 && written.size() < extents; ++i) {
      const SeveralSources::Actions actions = tick();
      EXPECT_FALSE(actions.error) << actions.error->message;
      written.insert(written.end(), actions.written.begin(), actions.written.end());
      for (const LegId leg : {kAlpha, kBeta}) {
        for (const ExtentId extent : asked<Want>(actions, leg)) {
          write(leg, extent);
          EXPECT_TRUE(say(leg, extent, digest_of(extent)));
        }
        for (const ExtentId extent : asked<DigestsWanted>(actions, leg)) {
          if (written.size() == extents) {  // the last look
            looks_[leg.value()].push_back(extent);
          } else {
            EXPECT_TRUE(say(leg, extent, digest_of(extent)));
          }
        }
      }
      if (std::ranges::find(actions.whole, kObject) != actions.whole.end()) whole_ = true;
    }
    return written;
  }

  SeveralSources several_{kExtentBytes, crc::CrcKind::kCrc64Ecma, 7};
  uint64_t now_ns_ = 1;
  uint64_t came_[2] = {};
  std::vector<ExtentId> looks_[2];  // asked for when all had come, and not answered
  bool whole_ = false;
};

TEST_F(SeveralSourcesTest, TheFirstWaitsForOthersThatAreAboutToJoin) {
  add(1);
  several_.join({.leg = kAlpha, .peer = "alpha", .rtt_ns = 1'000'000, .expected_bps = 10'000'000, .lanes = 1},
                now_ns_);
  several_.others_join({.some = true, .faster = true});
  EXPECT_TRUE(asked<Want>(tick(), kAlpha).empty());
  several_.join(
      {.leg = kBeta, .peer = "beta", .rtt_ns = 1'000'000, .expected_bps = 1'000'000'000, .lanes = 1},
      now_ns_);
  several_.others_join({});
  const SeveralSources::Actions actions = tick();
  EXPECT_EQ(asked<Want>(actions, kBeta).size(), 1U) << "the fast one has it";
  EXPECT_TRUE(asked<Want>(actions, kAlpha).empty());
}

// The first has sent it, and says its digests only when another was asked for it.
TEST_F(SeveralSourcesTest, APackThatTwoWereAskedForComesAllTheSame) {
  for (const uint64_t extents : {1, 3}) {
    const ObjectId pack(extents);
    SeveralSources several(kExtentBytes, crc::CrcKind::kCrc64Ecma, 7);
    uint64_t came[2] = {};
    for (const LegId leg : {kAlpha, kBeta})
      several.join({.leg = leg, .peer = "node", .rtt_ns = 1'000'000, .lanes = 1}, now_ns_);
    several.add({.id = pack, .size_bytes = extents * kExtentBytes, .whole = true, .shown = "a pack"}, {});
    const auto write = [&](LegId leg, ExtentId extent) {
      came[leg.value()] += kExtentBytes;
      several.written(leg, {.kind = board::EventKind::kExtentWritten,
                            .object = pack.value(),
                            .offset = extent.value() * kExtentBytes,
                            .length = kExtentBytes,
                            .digest = digest_of(extent)});
    };
    const auto say = [&](LegId leg, ExtentId extent) {
      several.said(leg,
                   {.object = pack, .offset = extent.value() * kExtentBytes, .digests = {digest_of(extent)}});
    };
    const auto tick = [&](std::optional<LegId> quiet) {
      now_ns_ += 10'000'000;
      for (const LegId leg : {kAlpha, kBeta})
        several.tick(leg, {.bytes = came[leg.value()], .up = true, .heard_ns = leg == quiet ? 1 : now_ns_},
                     now_ns_);
      return several.take_actions();
    };
    const std::vector<ExtentId> all = extents_of({{.offset = 0, .length = extents * kExtentBytes}});
    const SeveralSources::Actions begun = tick(std::nullopt);
    const LegId first = asked<Want>(begun, kAlpha).empty() ? kBeta : kAlpha;
    const LegId other = first == kAlpha ? kBeta : kAlpha;
    ASSERT_EQ(asked<Want>(begun, first), all);
    for (const ExtentId extent : all) write(first, extent);
    bool taken_over = false;
    for (int i = 0; i < 1000 && !taken_over; ++i) taken_over = asked<Want>(tick(first), other) == all;
    ASSERT_TRUE(taken_over);
    for (const ExtentId extent : all) say(first, extent);
    size_t whole = 0;
    for (int i = 0; i < 1000 && whole == 0; ++i) {
      const SeveralSources::Actions actions = tick(std::nullopt);
      ASSERT_FALSE(actions.error) << actions.error->message;
      whole = actions.whole.size();
      for (const LegId leg : {kAlpha, kBeta}) {
        for (const ExtentId extent : asked<Want>(actions, leg)) {
          write(leg, extent);
          say(leg, extent);
        }
        for (const ExtentId extent : asked<DigestsWanted>(actions, leg)) say(leg, extent);
      }
    }
    EXPECT_EQ(whole, 1U) << extents;
  }
}

TEST_F(SeveralSourcesTest, TheFirstDoesNotWaitForLong) {
  add(1);
  join(kAlpha, "alpha");
  several_.others_join({.some = true, .faster = true});
  now_ns_ += 300'000'000;
  EXPECT_EQ(asked<Want>(tick(), kAlpha).size(), 1U);
}

TEST_F(SeveralSourcesTest, WhoStillSpeaksWithItsPeerIsWaitedForHalfARoundTrip) {
  add(1);
  several_.join({.leg = kAlpha, .peer = "alpha", .rtt_ns = 80'000'000, .lanes = 1}, now_ns_);
  several_.others_join({.faster_calls = true});
  EXPECT_TRUE(asked<Want>(tick(), kAlpha).empty());
  now_ns_ += 40'000'000;
  EXPECT_EQ(asked<Want>(tick(), kAlpha).size(), 1U);
}

TEST_F(SeveralSourcesTest, AnExtentCountsOnceItsSourceHasSaidItsDigest) {
  add(8);
  join(kAlpha, "alpha");
  const std::vector<ExtentId> wanted = asked<Want>(tick(), kAlpha);
  ASSERT_FALSE(wanted.empty());
  write(kAlpha, wanted.front());
  EXPECT_TRUE(tick().written.empty());
  EXPECT_TRUE(say(kAlpha, wanted.front(), digest_of(wanted.front())));
  const SeveralSources::Actions actions = tick();
  ASSERT_EQ(actions.written.size(), 1U);
  EXPECT_EQ(actions.written[0].offset, wanted.front().value() * kExtentBytes);
  EXPECT_EQ(actions.written[0].digest, digest_of(wanted.front()));
}

TEST_F(SeveralSourcesTest, ASourceWhoseWordsAreNotItsBytesIsDoneWithoutInTheEnd) {
  add(64);
  join(kAlpha, "alpha");
  std::optional<Error> error;
  size_t forgotten = 0;
  for (int i = 0; i < 100 && !error; ++i) {
    const SeveralSources::Actions actions = tick();
    forgotten += actions.forgotten.size();
    EXPECT_TRUE(actions.written.empty());
    error = actions.error;
    for (const ExtentId extent : asked<Want>(actions, kAlpha)) {
      write(kAlpha, extent);
      EXPECT_TRUE(say(kAlpha, extent, digest_of(extent) + 1));
    }
  }
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::kIncompatible) << "its leg ends, not the session";
  EXPECT_NE(error->message.find("alpha"), std::string::npos) << error->message;
  EXPECT_GE(forgotten, 3U);
}

TEST_F(SeveralSourcesTest, BothBringPartsAndEachLooksOnceMoreAtTheEnd) {
  add(200);
  join(kAlpha, "alpha");
  join(kBeta, "beta");
  EXPECT_EQ(bring_all(200).size(), 200U);
  EXPECT_TRUE(tick().whole.empty() && !whole_) << "not before they have looked";
  for (const LegId leg : {kAlpha, kBeta}) {
    ASSERT_EQ(looks_[leg.value()].size(), 1U) << leg.value();
    EXPECT_TRUE(say(leg, looks_[leg.value()][0], digest_of(looks_[leg.value()][0])));
  }
  EXPECT_EQ(tick().whole, std::vector<ObjectId>{kObject});
}

// The look is asked for with the last extents, and its answer comes with theirs.
TEST_F(SeveralSourcesTest, WhoHasLookedWithItsLastExtentsNeedNotLookAgain) {
  add(3);
  join(kAlpha, "alpha");
  SeveralSources::Actions actions = tick();
  const std::vector<ExtentId> wanted = asked<Want>(actions, kAlpha);
  ASSERT_EQ(wanted.size(), 3U);
  const std::vector<ExtentId> looks = asked<DigestsWanted>(actions, kAlpha);
  ASSERT_EQ(looks, std::vector<ExtentId>{ExtentId(2)});
  for (const ExtentId extent : wanted) {
    write(kAlpha, extent);
    EXPECT_TRUE(several_.said(kAlpha, {.object = kObject,
                                       .offset = extent.value() * kExtentBytes,
                                       .digests = {digest_of(extent)},
                                       .last = extent == ExtentId(2)}));
  }
  actions = several_.take_actions();
  EXPECT_EQ(actions.whole, std::vector<ObjectId>{kObject});
  EXPECT_TRUE(asked<DigestsWanted>(actions, kAlpha).empty());
}

TEST_F(SeveralSourcesTest, ALookBeforeMoreWasAskedForDoesNotCount) {
  add(8);
  join(kAlpha, "alpha");
  join(kBeta, "beta");
  std::vector<ExtentId> of_alpha = asked<Want>(tick(), kAlpha);
  ASSERT_FALSE(of_alpha.empty());
  several_.leave(kBeta);  // if anything was asked of it, it is alpha's now
  SeveralSources::Actions actions = tick();
  for (int i = 0; i < 100 && asked<DigestsWanted>(actions, kAlpha).empty(); ++i) actions = tick();
  // Something that had counted is lost, and asked of alpha again, before it has answered.
  recovery::ExtentMap none(recovery::Layout{.size_bytes = 8 * kExtentBytes, .extent_bytes = kExtentBytes});
  for (ExtentId extent; extent < ExtentId(8); ++extent) {
    write(kAlpha, extent);
    say(kAlpha, extent, digest_of(extent));
  }
  actions = several_.take_actions();
  several_.only_there(kObject, none);
  actions = tick();
  ASSERT_FALSE(asked<Want>(actions, kAlpha).empty());
  EXPECT_TRUE(several_.said(
      kAlpha,
      {.object = kObject, .offset = 7 * kExtentBytes, .digests = {digest_of(ExtentId(7))}, .last = true}));
  for (ExtentId extent; extent < ExtentId(8); ++extent) {
    write(kAlpha, extent);
    say(kAlpha, extent, digest_of(extent));
  }
  EXPECT_TRUE(several_.take_actions().whole.empty()) << "it looks once more";
}

TEST_F(SeveralSourcesTest, WhoLeavesNeedNotLook) {
  add(200);
  join(kAlpha, "alpha");
  join(kBeta, "beta");
  EXPECT_EQ(bring_all(200).size(), 200U);
  several_.leave(kAlpha);
  several_.leave(kBeta);
  EXPECT_EQ(several_.take_actions().whole, std::vector<ObjectId>{kObject});
}

TEST_F(SeveralSourcesTest, WhoseStreamIsGoneIsNotWaitedFor) {
  add(200);
  join(kAlpha, "alpha");
  join(kBeta, "beta");
  EXPECT_EQ(bring_all(200).size(), 200U);
  ASSERT_EQ(looks_[0].size() + looks_[1].size(), 2U);
  EXPECT_TRUE(say(kAlpha, looks_[0][0], digest_of(looks_[0][0])));
  EXPECT_TRUE(whole_within(900'000'000, false).empty()) << "it may be back soon";
  EXPECT_EQ(whole_within(200'000'000, false), std::vector<ObjectId>{kObject});
}

// Its cable is cut, or its process stands still: nobody has said so.
TEST_F(SeveralSourcesTest, WhoIsSilentIsNotWaitedForLong) {
  add(200);
  join(kAlpha, "alpha");
  join(kBeta, "beta");
  EXPECT_EQ(bring_all(200).size(), 200U);
  ASSERT_EQ(looks_[0].size() + looks_[1].size(), 2U);
  EXPECT_TRUE(say(kAlpha, looks_[0][0], digest_of(looks_[0][0])));
  EXPECT_TRUE(whole_within(1'900'000'000, true).empty()) << "a heartbeat comes each second";
  EXPECT_EQ(several_.waiting_for(), "node beta (a last look at its /in/file)");
  // Something was heard of it, and then nothing more.
  EXPECT_EQ(whole_within(2'600'000'000, true), std::vector<ObjectId>{kObject});
  EXPECT_EQ(several_.waiting_for(), "");
}

TEST_F(SeveralSourcesTest, ReplicasThatDifferAreNotMixed) {
  add(200);
  join(kAlpha, "alpha");
  join(kBeta, "beta");
  std::optional<Error> error;
  std::vector<ExtentId> of_beta;
  for (int i = 0; i < 100 && !error; ++i) {
    const SeveralSources::Actions actions = tick();
    error = actions.error;
    for (const ExtentId extent : asked<Want>(actions, kBeta)) of_beta.push_back(extent);
    for (const LegId leg : {kAlpha, kBeta})
      for (const ExtentId extent : asked<DigestsWanted>(actions, leg))
        EXPECT_TRUE(say(leg, extent, digest_of(extent) + leg.value()));
  }
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::kIntegrity);
  for (const char* word : {"alpha", "beta", "/in/file"})
    EXPECT_NE(error->message.find(word), std::string::npos) << error->message;
  EXPECT_TRUE(of_beta.empty()) << "what alpha began is asked of beta once they agree";
}

TEST_F(SeveralSourcesTest, OnANewStreamAllIsSaidAgain) {
  add(8);
  join(kAlpha, "alpha");
  const std::vector<ExtentId> wanted = asked<Want>(tick(), kAlpha);
  ASSERT_FALSE(wanted.empty());
  write(kAlpha, wanted.front());  // its digest was lost with the stream
  several_.on_new_stream(kAlpha);
  std::vector<ExtentId> again = asked<Want>(several_.take_actions(), kAlpha);
  for (const ExtentId extent : wanted)
    EXPECT_NE(std::ranges::find(again, extent), again.end()) << extent.value();
}

TEST_F(SeveralSourcesTest, WhatALegHadAndNobodyConfirmedIsAskedOfAnother) {
  add(4);
  join(kAlpha, "alpha");
  const std::vector<ExtentId> wanted = asked<Want>(tick(), kAlpha);
  ASSERT_FALSE(wanted.empty());
  write(kAlpha, wanted.front());
  several_.leave(kAlpha);
  join(kBeta, "beta");
  const SeveralSources::Actions actions = several_.take_actions();
  ASSERT_EQ(actions.forgotten.size(), 1U) << "a worker wrote it, and it does not count";
  EXPECT_EQ(actions.forgotten[0].range.offset, wanted.front().value() * kExtentBytes);
  EXPECT_EQ(bring_all(4).size(), 4U);
}

TEST_F(SeveralSourcesTest, DigestsOfExtentsThatThereAreNotAreRefused) {
  add(4);
  join(kAlpha, "alpha");
  EXPECT_FALSE(say(kAlpha, ExtentId(4), 1));
  EXPECT_FALSE(several_.said(kAlpha, {.object = kObject, .offset = 1, .digests = {1}}));
  EXPECT_FALSE(several_.said(kAlpha, {.object = kObject, .offset = 0, .digests = {1, 2, 3, 4, 5}}));
  EXPECT_TRUE(several_.said(kAlpha, {.object = ObjectId(9), .offset = 0, .digests = {1}})) << "it is done";
}

// A disk gave back other bytes than were written.
TEST_F(SeveralSourcesTest, WhatIsLostHereIsAskedForAgain) {
  add(8);
  join(kAlpha, "alpha");
  join(kBeta, "beta");
  EXPECT_EQ(bring_all(8).size(), 8U);
  recovery::ExtentMap there(recovery::Layout{.size_bytes = 8 * kExtentBytes, .extent_bytes = kExtentBytes});
  there.set(recovery::ExtentRun{.first = ExtentId(0), .end = ExtentId(5)});
  several_.only_there(kObject, there);
  EXPECT_EQ(bring_all(3).size(), 3U);
}

}  // namespace
}  // namespace sluice::transfer
