// Sources that may have changed while they were sent: what was sent counts only if it is what they hold.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "control/transfer/scenes_for_test.h"

namespace sluice::transfer::test {
namespace {

constexpr size_t kBlocks = 2 + 1;  // of the fixture's files, of 80 and 2 extents

Scene suspect_source() {
  Scene scene = source();
  scene.suspect = true;
  return scene;
}

TEST(ASource, ThatWasLeftAloneIsReadOnce) {
  World world(source());
  world.start();
  EXPECT_EQ(world.state(), ViewState::kSucceeded);
  EXPECT_EQ(world.count<ReadExtents>(), 0U);
}

TEST(ASource, ThatSomethingHappenedToIsReadAgainAndSentIfItIsTheSame) {
  World world(source());
  world.source_ctime_ns = 2;  // another link, other rights, or a write whose mtime was put back
  world.start();
  world.pass(kLongNs);
  EXPECT_EQ(world.state(), ViewState::kSucceeded);
  EXPECT_EQ(world.count<ReadExtents>(), kBlocks);
  EXPECT_TRUE(world.logged("f0: something happened to it (its ctime changed)"));
  EXPECT_TRUE(world.logged("f0: holds what was sent"));
}

TEST(ASource, ThatSomebodyMayWriteIsReadAgain) {
  World world(suspect_source());
  world.start();
  world.pass(kLongNs);
  EXPECT_EQ(world.state(), ViewState::kSucceeded);
  EXPECT_EQ(world.count<ReadExtents>(), kBlocks);
  EXPECT_TRUE(world.logged("f0: somebody has it open for writing"));
}

TEST(ASource, OfBeforeCtimesWereKeptIsTakenByItsOtherTimes) {
  World world(source());
  world.source_ctime_ns = 2;
  world.files_ctime_ns = 0;
  world.start();
  EXPECT_EQ(world.state(), ViewState::kSucceeded);
  EXPECT_EQ(world.count<ReadExtents>(), 0U);
}

TEST(ASource, ThatHoldsOtherBytesThanWereSentIsAnErrorAndItsDigestIsNotSaid) {
  for (const bool suspect : {false, true}) {
    World world(alone(suspect ? suspect_source() : source()));
    if (!suspect) world.source_ctime_ns = 2;
    world.source_change = 1;
    world.start();
    world.pass(kLongNs);
    EXPECT_EQ(world.state(), ViewState::kFailed);
    EXPECT_EQ(world.error(), ErrorCode::kIntegrity);
    EXPECT_EQ(world.count<ReadExtents>(), 1U) << "and not to its end";
    const std::vector<FileDigest> said = world.said<FileDigest>();
    EXPECT_TRUE(std::all_of(said.begin(), said.end(),
                            [](const FileDigest& digest) { return digest.size_bytes == 0; }));
  }
}

TEST(ASource, IsReadOnWhereItWasWhenAnAttemptEnds) {
  World world(suspect_source());
  world.hold<ReadExtents>(1);
  world.start();
  ASSERT_EQ(world.held(), 1U);
  world.pass(kSecondNs);
  EXPECT_NE(world.transfer().view(world.now_ns).waiting_for.find("reading /from/f0 again"),
            std::string::npos);
  world.lose_board();
  world.release();
  world.attach();
  world.pass(kLongNs);
  EXPECT_EQ(world.state(), ViewState::kSucceeded);
  EXPECT_EQ(world.count<ReadExtents>(), kBlocks);
}

TEST(ASource, ThatCannotBeReadAgainWaitsForAnOperator) {
  World world(alone(suspect_source()));
  world.fail<ReadExtents>(ErrorCode::kStorage, 1);
  world.start();
  EXPECT_EQ(world.phase(), TransferPhase::kPaused);
  EXPECT_EQ(world.error(), ErrorCode::kStorage);
  world.post(ContinueAsked{});
  world.pass(kLongNs);
  EXPECT_EQ(world.state(), ViewState::kSucceeded);
  EXPECT_EQ(world.count<ReadExtents>(), kBlocks - 1 + 1);
}

}  // namespace
}  // namespace sluice::transfer::test
