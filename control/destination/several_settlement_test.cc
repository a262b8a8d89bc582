// Sources whose files differ, where a list says what the whole comes to.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "control/destination/several_sources.h"

namespace sluice::transfer {
namespace {

constexpr uint64_t kSettledBytes = 65536;
constexpr uint64_t kSettledExtents = 100;
constexpr LegId kSettledLegs[] = {LegId(0), LegId(1), LegId(2)};
constexpr ObjectId kSettled(0);

// Sources bring what they are asked for at once. A source may have another byte in some extents.
class SettledSourcesTest : public testing::Test {
 protected:
  void begin(bool listed = true) {
    several_.emplace(kSettledBytes, crc::CrcKind::kNone, 7);
    came_.clear();
    sent_.clear();
    brought_.clear();
    there_.clear();
    several_->add({.id = kSettled,
                   .size_bytes = kSettledExtents * kSettledBytes,
                   .listed = listed,
                   .shown = "/in/file"},
                  {});
    for (const LegId leg : kSettledLegs)
      if (!away_.contains(leg)) join(leg);
    several_->others_join({.come = !away_.empty()});
  }
  void join(LegId leg) {
    several_->join({.leg = leg, .peer = fmt_of(leg), .rtt_ns = 1'000'000, .lanes = 1}, now_ns_);
  }
  void all_have_come() {
    for (const LegId leg : std::exchange(away_, {})) join(leg);
    several_->others_join({});
  }
  static std::string fmt_of(LegId leg) { return std::string("node") + std::to_string(leg.value()); }
  uint64_t digest_of(LegId leg, uint64_t extent) const {
    const auto its = damaged_.find(leg);
    const bool other = its != damaged_.end() && its->second.contains(extent);
    return 1000 + extent + (other ? 100000 : 0);
  }
  void damage(LegId leg, uint64_t from, uint64_t end) {
    for (; from < end; ++from) damaged_[leg].insert(from);
  }
  void answer(LegId leg, const DigestsWanted& wanted) {
    for (const recovery::Range& range : wanted.ranges) {
      ExtentDigests said{.object = kSettled, .offset = range.offset, .digests = {}};
      for (uint64_t at = range.offset; at < range.end(); at += kSettledBytes)
        said.digests.push_back(digest_of(leg, at / kSettledBytes));
      EXPECT_TRUE(several_->said(leg, said));
    }
  }
  // WIRE 2.1.6: what it has sent it sends again only if it is needed, but it says the digest.
  void send(LegId leg, const Want& want) {
    for (const recovery::Range& range : want.ranges) {
      for (uint64_t at = range.offset; at < range.end(); at += kSettledBytes) {
        if (sent_[leg].insert(at).second) bring(leg, at);
        EXPECT_TRUE(several_->said(
            leg, {.object = kSettled, .offset = at, .digests = {digest_of(leg, at / kSettledBytes)}}));
      }
    }
  }
  // A source has not sent yet what it was asked for just before.
  void repeat(LegId leg, const Need& need, const std::set<uint64_t>& sent_before) {
    for (const recovery::Range& range : need.ranges)
      for (uint64_t at = range.offset; at < range.end(); at += kSettledBytes)
        if (sent_before.contains(at)) bring(leg, at);
  }
  void bring(LegId leg, uint64_t offset) {
    came_[leg] += kSettledBytes;
    ++brought_[leg];
    several_->written(leg, {.kind = board::EventKind::kExtentWritten,
                            .object = kSettled.value(),
                            .offset = offset,
                            .length = kSettledBytes,
                            .digest = digest_of(leg, offset / kSettledBytes)});
  }
  // Until all of it is there (true) or nothing more happens.
  bool run() {
    for (int i = 0; i < 2000; ++i) {
      now_ns_ += 10'000'000;
      if (now_ns_ >= until_ns_ && !away_.empty()) all_have_come();
      for (const LegId leg : kSettledLegs)
        several_->tick(leg, {.bytes = came_[leg], .up = true, .heard_ns = silent(leg) ? 1 : now_ns_},
                       now_ns_);
      const SeveralSources::Actions actions = several_->take_actions();
      EXPECT_FALSE(actions.error) << actions.error->message;
      if (!actions.unsettled.empty()) return false;
      for (const parts::ObjectRange& gone : actions.forgotten) {
        // The ledger forgets a block as a whole if its digests were folded.
        const uint64_t first = gone.range.offset / kSettledBytes / folded_ * folded_;
        for (uint64_t at = first; at * kSettledBytes < gone.range.end() || at % folded_ != 0; ++at)
          there_.erase(at);
      }
      if (!actions.forgotten.empty()) {
        recovery::ExtentMap there(recovery::Layout{.size_bytes = kSettledExtents * kSettledBytes,
                                                   .extent_bytes = static_cast<uint32_t>(kSettledBytes)});
        for (const auto& [extent, digest] : there_) there.set(ExtentId(extent));
        several_->only_there(kSettled, there);
      }
      for (const board::Event& event : actions.written) there_[event.offset / kSettledBytes] = event.digest;
      std::map<LegId, std::set<uint64_t>> sent_before = sent_;
      std::vector<SeveralSources::Word> words = std::exchange(unheard_, {});
      words.insert(words.end(), actions.words.begin(), actions.words.end());
      for (const SeveralSources::Word& word : words) {
        if (silent(word.leg)) {
          unheard_.push_back(word);
          continue;
        }
        if (const auto* wanted = std::get_if<DigestsWanted>(&word.message)) answer(word.leg, *wanted);
        const auto* want = std::get_if<Want>(&word.message);
        if (want != nullptr && !want->withdrawn) send(word.leg, *want);
        if (const auto* need = std::get_if<Need>(&word.message))
          repeat(word.leg, *need, sent_before[word.leg]);
      }
      if (!actions.whole.empty()) return true;
    }
    ADD_FAILURE() << "it neither ends nor fails: " << several_->waiting_for();
    return false;
  }
  bool silent(LegId leg) const { return leg == silent_ && now_ns_ < until_ns_; }
  bool right(LegId by) const {
    for (uint64_t extent = 0; extent < kSettledExtents; ++extent)
      if (!there_.contains(extent) || there_.at(extent) != digest_of(by, extent)) return false;
    return true;
  }
  // All settled by a list that wants what this leg has.
  bool settled_to(LegId wanted) {
    for (int i = 0; i < 5; ++i) {
      if (!run()) return false;
      if (right(wanted)) return true;
      if (!several_->settle(kSettled)) return false;
    }
    return false;
  }

  std::optional<SeveralSources> several_{std::in_place, kSettledBytes, crc::CrcKind::kNone, 7};
  uint64_t now_ns_ = 1;
  // Until then these are on their way, and this one hears and says nothing.
  uint64_t until_ns_ = 0;
  std::set<LegId> away_;
  std::optional<LegId> silent_;
  std::vector<SeveralSources::Word> unheard_;
  std::map<LegId, uint64_t> came_;
  std::map<LegId, std::set<uint64_t>> sent_;  // offsets of extents
  std::map<LegId, uint64_t> brought_;         // extents, also again
  std::map<LegId, std::set<uint64_t>> damaged_;
  std::map<uint64_t, uint64_t> there_;  // extents that count
  uint64_t folded_ = 1;                 // extents whose digests the ledger keeps as one
};

// The extents that are compared beforehand are the first, the last and one that the seed chooses.
TEST_F(SettledSourcesTest, WhatIsNotSeenBeforehandIsFetchedAgainFromTheOthers) {
  for (const LegId liar : kSettledLegs) {
    SCOPED_TRACE(liar.value());
    damaged_.clear();
    damage(liar, 1, kSettledExtents - 1);
    const uint64_t chosen =
        parts::Replicas({.seed = 7, .extent_bytes = kSettledBytes})
            .extents_of({.object = kSettled, .size_bytes = kSettledExtents * kSettledBytes, .name = ""})[1]
            .value();
    damaged_[liar].erase(chosen);
    begin();
    const LegId honest = kSettledLegs[liar.value() == 0 ? 1 : 0];
    EXPECT_TRUE(settled_to(honest));
    EXPECT_EQ(several_->differing(kSettled), std::vector<LegId>{liar});
    uint64_t sent = 0;
    for (const LegId leg : kSettledLegs) sent += brought_[leg];
    EXPECT_LT(sent, kSettledExtents + brought_[liar] + 10) << "what the others brought is not fetched again";
  }
}

TEST_F(SettledSourcesTest, WhatGoesWithItIsNeededOfTheSourcesThatHaveSentItAlready) {
  folded_ = 64;
  damage(kSettledLegs[0], 1, 20);
  damage(kSettledLegs[0], 70, 80);
  begin();
  EXPECT_TRUE(settled_to(kSettledLegs[1]));
}

TEST_F(SettledSourcesTest, WhatIsSeenBeforehandIsSettledToo) {
  damage(kSettledLegs[1], 0, 1);
  begin();
  EXPECT_TRUE(settled_to(kSettledLegs[0]));
  EXPECT_EQ(several_->differing(kSettled), std::vector<LegId>{kSettledLegs[1]});
}

TEST_F(SettledSourcesTest, TheListDecidesAgainstTheMost) {
  damage(kSettledLegs[0], 3, 90);
  damage(kSettledLegs[1], 3, 90);
  begin();
  EXPECT_TRUE(settled_to(kSettledLegs[2]));
  EXPECT_EQ(several_->differing(kSettled).size(), 2U);
}

TEST_F(SettledSourcesTest, IfNoneHasWhatIsListedItSaysSo) {
  damage(kSettledLegs[0], 3, 90);
  damage(kSettledLegs[1], 3, 90);
  damage(kSettledLegs[2], 5, 6);
  begin();
  int tries = 0;
  while (run() && ++tries < 10) {
    if (!several_->settle(kSettled)) break;
  }
  EXPECT_LE(tries, 4);
  EXPECT_TRUE(several_->differing(kSettled).empty());
}

TEST_F(SettledSourcesTest, OneSourceAloneIsNotAsked) {
  away_ = {kSettledLegs[1], kSettledLegs[2]};
  begin();
  away_.clear();
  several_->others_join({});  // they do not come
  ASSERT_TRUE(run());
  EXPECT_FALSE(several_->settle(kSettled));
}

// Nobody knows yet what it has.
TEST_F(SettledSourcesTest, WhoIsOnItsWayMayHaveWhatIsListed) {
  for (const auto& away : {std::set{kSettledLegs[2]}, std::set{kSettledLegs[1], kSettledLegs[2]}}) {
    away_ = away;
    until_ns_ = now_ns_ + 10'000'000'000;
    for (size_t leg = 0; leg < 2; ++leg) damage(kSettledLegs[leg], 3, 90);
    begin();
    EXPECT_TRUE(settled_to(kSettledLegs[2])) << away.size();
  }
}

TEST_F(SettledSourcesTest, WhoWasSilentIsAskedOnceItSpeaks) {
  for (size_t leg = 0; leg < 2; ++leg) damage(kSettledLegs[leg], 3, 90);
  begin();
  ASSERT_TRUE(run());
  ASSERT_TRUE(several_->settle(kSettled));
  silent_ = kSettledLegs[2];
  until_ns_ = now_ns_ + 10'000'000'000;
  EXPECT_TRUE(settled_to(kSettledLegs[2]));
}

TEST_F(SettledSourcesTest, WithoutAListNothingIsSettled) {
  begin(false);
  ASSERT_TRUE(run());
  EXPECT_FALSE(several_->settle(kSettled));
}

// The source that had it is gone for good: the destination tries the others' version, and the list refuses
// it.
TEST_F(SettledSourcesTest, IfTheOnlyOneThatHasItLeavesTheRestIsTried) {
  damage(kSettledLegs[0], 3, 90);
  damage(kSettledLegs[1], 3, 90);
  begin();
  ASSERT_TRUE(run());
  ASSERT_TRUE(several_->settle(kSettled));
  several_->leave(kSettledLegs[2]);
  int tries = 0;
  while (run() && ++tries < 10) {
    if (!several_->settle(kSettled)) break;
  }
  EXPECT_LE(tries, 4);
}

// Whoever had sent an extent before, one that the list refused among them, may not be asked for it any more.
TEST_F(SettledSourcesTest, ANeedGoesToWhoeverIsToBringIt) {
  begin();
  for (const LegId leg : kSettledLegs) several_->tick(leg, {.bytes = 0, .up = true, .heard_ns = 1}, 1);
  const SeveralSources::Actions actions = several_->take_actions();
  ASSERT_FALSE(actions.words.empty());
  const auto* const want = std::get_if<Want>(&actions.words.front().message);
  ASSERT_NE(want, nullptr);
  const LegId asked = actions.words.front().leg;
  const LegId other = asked == kSettledLegs[0] ? kSettledLegs[1] : kSettledLegs[0];
  const recovery::Range part{.offset = want->ranges.front().offset + 5, .length = 7};
  const std::vector<parts::Portion> needed = several_->to_need(other, kSettled, {part});
  ASSERT_EQ(needed.size(), 1U);
  EXPECT_EQ(needed.front().leg, asked);
  EXPECT_EQ(needed.front().ranges, std::vector{part});
  several_->leave(asked);
  EXPECT_TRUE(several_->to_need(other, kSettled, {part}).empty()) << "nobody is to bring it";
}

// It is about to get its name. The source that had it may go, and the others have what the list refused.
TEST_F(SettledSourcesTest, WhatTheListHasTakenIsNotFetchedAgain) {
  damage(kSettledLegs[0], 3, 90);
  damage(kSettledLegs[1], 3, 90);
  begin();
  ASSERT_TRUE(settled_to(kSettledLegs[2]));
  several_->leave(kSettledLegs[2]);
  const SeveralSources::Actions actions = several_->take_actions();
  EXPECT_TRUE(actions.forgotten.empty());
  EXPECT_TRUE(actions.words.empty());
}

}  // namespace
}  // namespace sluice::transfer
