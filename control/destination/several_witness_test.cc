// That what several sources brought is what one of them has.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "control/destination/several_sources.h"
#include "control/recovery/extent_ledger.h"

namespace sluice::transfer {
namespace {

constexpr uint64_t kWitnessedBytes = 65536;  // of an extent
constexpr ObjectId kWitnessed(0);
constexpr LegId kWitnesses[] = {LegId(0), LegId(1), LegId(2)};
constexpr uint64_t kExtents = 300;

recovery::Layout layout(uint64_t extents) {
  return {.size_bytes = extents * kWitnessedBytes,
          .extent_bytes = kWitnessedBytes,
          .crc_kind = crc::CrcKind::kCrc64Ecma};
}

// Sources that send what they are asked for, and say the digests of what they have.
class SourcesWitnessTest : public testing::Test {
 protected:
  static constexpr uint64_t crc_of(uint64_t version, ExtentId extent) {
    return 1000 * version + extent.value();
  }
  uint64_t crc_at(LegId leg, ExtentId extent) const {
    const auto other = differs_.find(leg);
    return crc_of(other != differs_.end() && other->second.contains(extent.value()) ? 9 : 1, extent);
  }
  void begin(size_t legs, std::vector<recovery::Range> held = {}, std::vector<recovery::Range> holes = {}) {
    for (size_t i = 0; i < legs; ++i) join(kWitnesses[i]);
    for (const recovery::Range& range : held) came_.set(came_.whole_in(range));
    several_.add({.id = kWitnessed,
                  .size_bytes = kExtents * kWitnessedBytes,
                  .witnessed = true,
                  .holes = std::move(holes),
                  .shown = "/in/file"},
                 held);
  }
  void join(LegId leg) {
    here_.insert(leg);
    several_.join({.leg = leg,
                   .peer = "peer" + std::to_string(leg.value()),
                   .rtt_ns = 1'000'000,
                   .lanes = 1,
                   .digests_unanswered = taken_},
                  now_ns_);
  }
  void leave(LegId leg) {
    here_.erase(leg);
    several_.leave(leg);
  }
  // One turn; answers to questions wait for the next one.
  void turn() {
    now_ns_ += 1'000'000;
    for (const LegId leg : here_)
      several_.tick(leg, {.bytes = bytes_[leg], .up = true, .heard_ns = now_ns_}, now_ns_);
    const SeveralSources::Actions actions = several_.take_actions();
    if (actions.error) error_ = actions.error;
    for (const board::Event& event : actions.written) came_.set(came_.extent_at(event.offset));
    whole_ = whole_ || !actions.whole.empty();
    for (auto& [leg, extent] : std::exchange(questions_, {})) {
      if (!here_.contains(leg)) continue;
      several_.said(leg, {.object = kWitnessed,
                          .offset = extent.value() * kWitnessedBytes,
                          .digests = {crc_at(leg, extent)}});
    }
    for (const SeveralSources::Word& word : actions.words) hear(word);
    for (const LegId leg : here_) {
      const auto its = std::ranges::count_if(questions_, [&](const auto& each) { return each.first == leg; });
      EXPECT_LE(static_cast<uint64_t>(its), taken_);
      most_ = std::max(most_, static_cast<uint64_t>(its));
    }
  }
  void hear(const SeveralSources::Word& word) {
    if (const auto* const want = std::get_if<Want>(&word.message); want != nullptr && !want->withdrawn) {
      for (const ExtentId extent : extents_of(want->ranges)) {
        bytes_[word.leg] += kWitnessedBytes;
        const uint64_t crc = crc_at(word.leg, extent);
        (void)stored_.add(extent, crc);
        several_.written(word.leg, {.kind = board::EventKind::kExtentWritten,
                                    .object = kWitnessed.value(),
                                    .offset = extent.value() * kWitnessedBytes,
                                    .length = kWitnessedBytes,
                                    .digest = crc});
        several_.said(word.leg,
                      {.object = kWitnessed, .offset = extent.value() * kWitnessedBytes, .digests = {crc}});
      }
    } else if (const auto* const wanted = std::get_if<DigestsWanted>(&word.message)) {
      for (const ExtentId extent : extents_of(wanted->ranges)) {
        questions_.emplace_back(word.leg, extent);
        asked_[word.leg].insert(extent.value());
      }
    }
  }
  static std::vector<ExtentId> extents_of(const std::vector<recovery::Range>& ranges) {
    std::vector<ExtentId> extents;
    for (const recovery::Range& range : ranges)
      for (uint64_t at = range.offset; at < range.end(); at += kWitnessedBytes)
        extents.emplace_back(at / kWitnessedBytes);
    return extents;
  }
  void until_whole() {
    for (int i = 0; i < 3000 && !whole_ && !error_; ++i) turn();
  }
  static std::vector<uint64_t> compared_by_all() {
    std::vector<uint64_t> compared;
    for (const ExtentId extent :
         parts::Replicas({.seed = 7, .extent_bytes = kWitnessedBytes})
             .extents_of({.object = kWitnessed, .size_bytes = kExtents * kWitnessedBytes}))
      compared.push_back(extent.value());
    return compared;
  }
  uint64_t digest_of(LegId leg) const {
    recovery::ExtentLedger ledger(layout(kExtents));
    for (ExtentId at; at < ledger.map().end_id(); ++at) (void)ledger.add(at, crc_at(leg, at));
    return ledger.digest();
  }

  SeveralSources several_{kWitnessedBytes, crc::CrcKind::kCrc64Ecma, 7};
  uint64_t now_ns_ = 1;
  uint64_t taken_ = kDigestsUnansweredMin;  // digests that may be wanted at a time, as sources say
  uint64_t most_ = 0;                       // that were
  std::set<LegId> here_;
  std::map<LegId, std::set<uint64_t>> differs_;  // in these extents a leg has another version
  std::map<LegId, uint64_t> bytes_;
  std::map<LegId, std::set<uint64_t>> asked_;  // for digests
  std::vector<std::pair<LegId, ExtentId>> questions_;
  recovery::ExtentMap came_{layout(kExtents)};
  recovery::ExtentLedger stored_{layout(kExtents)};
  bool whole_ = false;
  std::optional<Error> error_;
};

TEST_F(SourcesWitnessTest, OfEqualFilesOneSourceSaysTheWhole) {
  begin(3);
  until_whole();
  ASSERT_TRUE(whole_);
  ASSERT_TRUE(several_.witnessed(kWitnessed));
  EXPECT_EQ(*several_.witnessed(kWitnessed), stored_.digest());
  size_t many = 0;
  for (const LegId leg : kWitnesses) many += asked_[leg].size() > 20 ? 1 : 0;
  EXPECT_EQ(many, 1U) << "one reads all of it, the others what they send";
}

TEST_F(SourcesWitnessTest, AMixtureOfTwoVersionsIsWhatNoSourceHas) {
  // Those that are compared beforehand are equal: the first, the last, one in between, and one of the first
  // to come.
  for (uint64_t extent = kExtents / 2; extent < kExtents - 1; ++extent)
    differs_[LegId(extent % 2)].insert(extent);
  for (const uint64_t compared : compared_by_all()) {
    differs_[LegId(0)].erase(compared);
    differs_[LegId(1)].erase(compared);
  }
  begin(2);
  until_whole();
  ASSERT_FALSE(error_) << error_->message;
  ASSERT_TRUE(whole_);
  ASSERT_TRUE(several_.witnessed(kWitnessed));
  EXPECT_NE(*several_.witnessed(kWitnessed), stored_.digest());
}

TEST_F(SourcesWitnessTest, OneExtentThatDiffersIsSeen) {
  size_t seen = 0;
  for (const uint64_t differing : {5U, 77U, 150U, 222U, 290U}) {
    several_.remove(kWitnessed);
    for (const LegId leg : kWitnesses) leave(leg);
    whole_ = false;
    error_.reset();
    questions_.clear();
    stored_ = recovery::ExtentLedger(layout(kExtents));
    differs_ = {{LegId(1), {differing}}};
    begin(2);
    until_whole();
    if (error_) {
      ++seen;
      continue;
    }
    ASSERT_TRUE(whole_) << differing;
    const uint64_t said = several_.witnessed(kWitnessed).value_or(0);
    EXPECT_TRUE(said == digest_of(LegId(0)) || said == digest_of(LegId(1)));
    // The witness has what is stored, or the difference is seen.
    if (said != stored_.digest()) ++seen;
  }
  EXPECT_GE(seen, 1U) << "some came from the source that is not the witness";
}

TEST_F(SourcesWitnessTest, OfOneSourceNothingMoreIsAsked) {
  begin(1);
  until_whole();
  EXPECT_TRUE(whole_);
  EXPECT_FALSE(several_.witnessed(kWitnessed));
  EXPECT_LT(asked_[LegId(0)].size(), 8U);
}

TEST_F(SourcesWitnessTest, WhatWasThereBeforeIsAskedOfOne) {
  const recovery::Range all{.offset = 0, .length = kExtents * kWitnessedBytes};
  for (ExtentId at; at < came_.end_id(); ++at) (void)stored_.add(at, crc_of(1, at));
  begin(1, {all});
  until_whole();
  EXPECT_TRUE(whole_);
  ASSERT_TRUE(several_.witnessed(kWitnessed));
  EXPECT_EQ(*several_.witnessed(kWitnessed), stored_.digest());
  EXPECT_EQ(asked_[LegId(0)].size(), kExtents);
}

// The rest of what a source takes is for other questions. An older source takes 64 extents.
TEST_F(SourcesWitnessTest, AWitnessIsAskedForAsMuchAtATimeAsItTakes) {
  const recovery::Range all{.offset = 0, .length = kExtents * kWitnessedBytes};
  for (const auto [taken, most] : {std::pair(64U, 16U), {256U, 184U}, {4096U, 300U}, {UINT32_MAX, 300U}}) {
    several_.remove(kWitnessed);
    for (const LegId leg : kWitnesses) leave(leg);
    questions_.clear();
    most_ = 0;
    whole_ = false;
    taken_ = taken;
    begin(1, {all});
    until_whole();
    EXPECT_TRUE(whole_) << taken;
    EXPECT_EQ(most_, most) << taken;
  }
}

// A silent one is not asked, and still owes what it was asked before.
TEST_F(SourcesWitnessTest, AWitnessThatWasSilentIsAskedForNoMoreThanItTakes) {
  taken_ = 256;
  begin(1, {{.offset = 0, .length = kExtents * kWitnessedBytes}});
  for (int i = 0; i < 3 && questions_.empty(); ++i) turn();
  const std::vector<std::pair<LegId, ExtentId>> owed = std::exchange(questions_, {});
  EXPECT_EQ(owed.size(), 184U);
  for (int i = 0; i < 400; ++i) {  // nothing comes on its stream
    now_ns_ += 10'000'000;
    several_.tick(LegId(0), {.bytes = bytes_[LegId(0)], .up = true, .heard_ns = 1}, now_ns_);
    for (const SeveralSources::Word& word : several_.take_actions().words) hear(word);
  }
  for (int i = 0; i < 3; ++i) {
    turn();
    EXPECT_TRUE(questions_.empty()) << "its window is full";
  }
  questions_ = owed;
  until_whole();
  EXPECT_TRUE(whole_);
}

TEST_F(SourcesWitnessTest, OfHolesNobodySaysAnything) {
  const recovery::Range hole{.offset = 100 * kWitnessedBytes, .length = 128 * kWitnessedBytes};
  for (uint64_t at = 100; at < 228; ++at) (void)stored_.add(ExtentId(at), 0);
  begin(2, {hole}, {hole});
  until_whole();
  EXPECT_TRUE(whole_);
  for (const LegId leg : kWitnesses)
    for (const uint64_t extent : asked_[leg]) EXPECT_TRUE(extent < 100 || extent >= 228) << extent;
  EXPECT_TRUE(several_.witnessed(kWitnessed));
}

// Another source has bytes there.
TEST_F(SourcesWitnessTest, WhatIsNoHoleAnyMoreIsAskedForAndWitnessed) {
  const recovery::Range hole{.offset = 100 * kWitnessedBytes, .length = 128 * kWitnessedBytes};
  begin(2, {hole}, {hole});
  for (int i = 0; i < 3; ++i) turn();
  several_.has_holes(kWitnessed, {});
  came_.clear(came_.whole_in(hole));
  several_.only_there(kWitnessed, came_);
  until_whole();
  EXPECT_TRUE(whole_);
  EXPECT_TRUE(came_.complete());
  ASSERT_TRUE(several_.witnessed(kWitnessed));
  EXPECT_EQ(*several_.witnessed(kWitnessed), stored_.digest());
  EXPECT_NE(several_.not_witnessed(kWitnessed).find(" from peer"), std::string::npos) << "nothing was there";
}

TEST_F(SourcesWitnessTest, AnotherOneIsAskedWhenTheWitnessIsGone) {
  begin(3);
  for (int i = 0; i < 20; ++i) turn();
  const auto most = std::ranges::max_element(asked_, {}, [](const auto& each) { return each.second.size(); });
  leave(most->first);
  until_whole();
  ASSERT_TRUE(whole_);
  ASSERT_TRUE(several_.witnessed(kWitnessed));
  EXPECT_EQ(*several_.witnessed(kWitnessed), stored_.digest());
}

// The attempt ended before the object got its name.
TEST_F(SourcesWitnessTest, WhatHasNoNameIsToldAgainInTheNextAttempt) {
  for (const size_t legs : {1, 2}) {
    several_.remove(kWitnessed);
    begin(legs);
    until_whole();
    ASSERT_TRUE(whole_) << legs;
    several_.leave_all();
    whole_ = false;
    for (const LegId leg : here_) join(leg);
    until_whole();
    EXPECT_TRUE(whole_) << legs;
    EXPECT_EQ(several_.witnessed(kWitnessed).has_value(), legs == 2);
  }
}

TEST_F(SourcesWitnessTest, ANewStreamIsAskedAgain) {
  begin(2);
  for (int i = 0; i < 20; ++i) turn();
  questions_.clear();  // they are lost with the stream
  for (const LegId leg : {LegId(0), LegId(1)}) several_.on_new_stream(leg);
  until_whole();
  EXPECT_TRUE(whole_);
}

}  // namespace
}  // namespace sluice::transfer
