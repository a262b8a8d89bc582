// Extents become shorter frames and come back; what is no such frame is found out, and nothing is written
// beyond.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/coding/zstd_frame.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "dataplane/coding/compressible_for_test.h"
#include "dataplane/core/hot.h"

namespace sluice::coding {
namespace {

constexpr uint32_t kExtentBytes = 1U << 20;

std::vector<uint8_t> random_bytes(size_t bytes) {
  std::mt19937_64 random(7);
  std::vector<uint8_t> data(bytes);
  for (uint8_t& byte : data) byte = static_cast<uint8_t>(random());
  return data;
}

// As a worker does it, without an allocation.
Step compress(Compressor& compressor, const std::vector<uint8_t>& plain, uint32_t frame_bytes_max,
              Effort effort = Effort::kShort) {
  const HotScope hot;
  compressor.begin(plain, frame_bytes_max, effort);
  Step step = Step::kMore;
  while (step == Step::kMore) step = compressor.step();
  return step;
}

Step restore(Restorer& restorer, std::span<const uint8_t> frame, uint32_t plain_bytes, size_t part_bytes) {
  const HotScope hot;
  restorer.begin(plain_bytes);
  Step step = Step::kMore;
  while (step == Step::kMore && !frame.empty()) {
    const auto part = frame.first(std::min(part_bytes, frame.size()));
    frame = frame.subspan(part.size());
    step = restorer.step(part);
  }
  return frame.empty() ? step : Step::kFailed;
}

TEST(ZstdFrame, BringsBackExtentsOfAnyLength) {
  Compressor compressor(kExtentBytes);
  Restorer restorer(kExtentBytes);
  for (const uint32_t bytes : {1024U, 4096U, 65536U, 65537U, 131072U, 262144U, 300'001U, kExtentBytes}) {
    for (const Effort effort : {Effort::kFast, Effort::kShort}) {
      const std::vector<uint8_t> plain = compressible_bytes(bytes, bytes);
      ASSERT_EQ(compress(compressor, plain, bytes, effort), Step::kDone) << bytes;
      EXPECT_LT(compressor.frame().size(), bytes);
      for (const size_t part_bytes : {size_t{240}, size_t{8956}, size_t{kExtentBytes}}) {
        ASSERT_EQ(restore(restorer, compressor.frame(), bytes, part_bytes), Step::kDone) << bytes;
        EXPECT_TRUE(std::ranges::equal(restorer.plain(), plain));
      }
    }
  }
}

TEST(ZstdFrame, AnExtentThatDoesNotGetShorterIsGivenUpAfterOneStep) {
  Compressor compressor(kExtentBytes);
  const std::vector<uint8_t> plain = random_bytes(kExtentBytes);
  compressor.begin(plain, kExtentBytes / 100 * 95, Effort::kFast);
  EXPECT_EQ(compressor.step(), Step::kFailed);
  EXPECT_EQ(compressor.step_bytes(), kCompressStepBytes);
  // And the next one is not disturbed by it.
  const std::vector<uint8_t> text = compressible_bytes(kExtentBytes, 1);
  EXPECT_EQ(compress(compressor, text, kExtentBytes), Step::kDone);
}

TEST(ZstdFrame, AFrameOfAnotherLengthIsRefused) {
  Compressor compressor(kExtentBytes);
  Restorer restorer(kExtentBytes);
  ASSERT_EQ(compress(compressor, compressible_bytes(100'000, 3), 100'000), Step::kDone);
  const auto frame = compressor.frame();
  EXPECT_EQ(restore(restorer, frame, 100'001, 1000), Step::kFailed) << "it holds less";
  EXPECT_EQ(restore(restorer, frame, 99'999, 1000), Step::kFailed) << "it holds more";
  EXPECT_NE(restore(restorer, frame.first(frame.size() - 1), 100'000, 1000), Step::kDone) << "cut off";
  std::vector<uint8_t> longer(frame.begin(), frame.end());
  longer.push_back(0);
  EXPECT_EQ(restore(restorer, longer, 100'000, longer.size()), Step::kFailed) << "with something behind it";
}

// A few hundred bytes that become a gigabyte: no more is restored than an extent has.
TEST(ZstdFrame, ABombIsNoDanger) {
  Compressor compressor(kExtentBytes);
  Restorer restorer(65536);
  ASSERT_EQ(compress(compressor, std::vector<uint8_t>(kExtentBytes), kExtentBytes), Step::kDone);
  EXPECT_EQ(restore(restorer, compressor.frame(), 65536, 1000), Step::kFailed);
}

TEST(ZstdFrame, NothingIsReadThatIsNoFrame) {
  Restorer restorer(kExtentBytes);
  EXPECT_EQ(restore(restorer, random_bytes(5000), 100'000, 1000), Step::kFailed);
  // A frame with a window of 2 MiB, and one that may be skipped.
  const std::vector<uint8_t> wide = {0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x58, 0x01, 0x00, 0x00};
  EXPECT_EQ(restore(restorer, wide, 0, wide.size()), Step::kFailed);
  const std::vector<uint8_t> skipped = {0x50, 0x2A, 0x4D, 0x18, 0x01, 0x00, 0x00, 0x00, 0x00};
  EXPECT_EQ(restore(restorer, skipped, 1, skipped.size()), Step::kFailed);
}

}  // namespace
}  // namespace sluice::coding
