// The sums of whole objects, however they are joined, beside those of one pass.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/sums/tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "dataplane/core/hot.h"
#include "dataplane/sums/range_summer.h"

namespace sluice::sums {
namespace {

constexpr uint32_t kLeaf = 1024;
constexpr uint64_t kSizes[] = {0, 1, 1023, 1024, 1025, 2048, 3077, 4096, 5120, 7 * 1024, 31745, 102400};

// The input of BLAKE3's test vectors.
std::vector<uint8_t> input(uint64_t bytes) {
  std::vector<uint8_t> made(bytes);
  for (uint64_t i = 0; i < bytes; ++i) made[i] = static_cast<uint8_t>(i % 251);
  return made;
}

ExtentSums in_one_pass(const std::vector<uint8_t>& bytes) {
  Summer summer;
  summer.begin(available(), 0, true);
  summer.add(bytes.data(), bytes.size());
  return summer.value();
}

ExtentSums of_subtree(const std::vector<uint8_t>& bytes, const Shape& shape, const Subtree& subtree) {
  const base::Range range = subtree.range(shape);
  Summer summer;
  summer.begin(available(), range.offset, subtree.is_whole(shape));
  summer.add(bytes.data() + range.offset, range.length);
  return summer.value();
}

std::vector<Summed> leaves_of(const std::vector<uint8_t>& bytes, const Shape& shape) {
  std::vector<Summed> leaves;
  for (uint64_t leaf = 0; leaf < shape.leaves(); ++leaf)
    leaves.push_back({.subtree = {.first = leaf}, .sums = of_subtree(bytes, shape, {.first = leaf})});
  return leaves;
}

std::string hex(const ExtentSums& sums) {
  std::string text;
  for (const uint8_t byte : sums.blake3) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

#ifdef SLUICE_BLAKE3
// https://github.com/BLAKE3-team/BLAKE3/blob/master/test_vectors/test_vectors.json
TEST(Sums, AreThoseOfThePublishedVectors) {
  const std::pair<uint64_t, std::string> published[] = {
      {0, "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"},
      {1, "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213"},
      {1024, "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7"},
      {1025, "d00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444"},
      {2048, "e776b6028c7cd22a4d0ba182a8bf62205d2ef576467e838ed6f2529b85fba24a"},
      {102400, "bc3e3d41a1146b069abffad3c0d44860cf664390afce4d9661f7902e7943e085"}};
  for (const auto& [size, digits] : published) {
    const Shape shape{.size_bytes = size, .extent_bytes = kLeaf};
    Tree tree(shape, available());
    for (const Summed& leaf : leaves_of(input(size), shape)) tree.add(leaf);
    ASSERT_TRUE(tree.whole()) << size;
    EXPECT_EQ(hex(*tree.whole()), digits) << size;
  }
}
#endif

TEST(SumTree, JoinsLeavesInAnyOrder) {
  std::mt19937_64 random(7);
  for (const uint64_t size : kSizes) {
    const Shape shape{.size_bytes = size, .extent_bytes = kLeaf};
    const std::vector<uint8_t> bytes = input(size);
    std::vector<Summed> leaves = leaves_of(bytes, shape);
    for (int round = 0; round < 6; ++round) {
      Tree tree(shape, available());
      for (size_t i = 0; i < leaves.size(); ++i) {
        EXPECT_FALSE(tree.whole()) << size << ": " << i;
        tree.add(leaves[i]);
        tree.add(leaves[i]);
        tree.check_invariants();
      }
      ASSERT_TRUE(tree.whole()) << size << " in round " << round;
      EXPECT_EQ(*tree.whole(), in_one_pass(bytes)) << size << " in round " << round;
      if (round == 0) std::ranges::reverse(leaves);
      if (round != 0) std::ranges::shuffle(leaves, random);
    }
  }
}

// What is read back comes in larger pieces, which may hold what is known already.
TEST(SumTree, TakesLargerPiecesBesideLeaves) {
  std::mt19937_64 random(8);
  for (const uint64_t size : kSizes) {
    const Shape shape{.size_bytes = size, .extent_bytes = kLeaf};
    const std::vector<uint8_t> bytes = input(size);
    for (int round = 0; round < 20 && size != 0; ++round) {
      std::vector<Summed> pieces = leaves_of(bytes, shape);
      for (int i = 0; i < 5; ++i) {
        const uint64_t from = random() % shape.leaves();
        const uint64_t end = from + 1 + random() % (shape.leaves() - from);
        const base::Range range{.offset = from * kLeaf, .length = shape.end_of(end) - from * kLeaf};
        RangeSummer summer(shape, available(), range);
        for (uint64_t at = 0; at < range.length;) {
          const uint64_t some = std::min<uint64_t>(1 + random() % 3000, range.length - at);
          summer.add(bytes.data() + range.offset + at, some);
          at += some;
        }
        for (const Summed& summed : summer.take()) pieces.push_back(summed);
      }
      std::ranges::shuffle(pieces, random);
      Tree tree(shape, available());
      for (const Summed& piece : pieces) {
        tree.add(piece);
        tree.check_invariants();
      }
      ASSERT_TRUE(tree.whole()) << size;
      EXPECT_EQ(*tree.whole(), in_one_pass(bytes)) << size;
    }
  }
}

TEST(SumTree, LacksWhatWasForgotten) {
  const Shape shape{.size_bytes = 11 * kLeaf + 3, .extent_bytes = kLeaf};
  std::vector<uint8_t> bytes = input(shape.size_bytes);
  Tree tree(shape, available());
  for (const Summed& leaf : leaves_of(bytes, shape)) tree.add(leaf);
  ASSERT_TRUE(tree.whole());
  tree.forget({.offset = 5 * kLeaf, .length = 2 * kLeaf});
  EXPECT_FALSE(tree.whole());
  EXPECT_EQ(tree.entries(), 0U) << "with it goes all that it was joined with";
  std::ranges::fill(bytes.begin() + 5 * kLeaf, bytes.begin() + 7 * kLeaf, uint8_t{0});
  for (const Summed& leaf : leaves_of(bytes, shape)) tree.add(leaf);
  ASSERT_TRUE(tree.whole());
  EXPECT_EQ(*tree.whole(), in_one_pass(bytes));

  Tree part(shape, available());
  const std::vector<Summed> leaves = leaves_of(bytes, shape);
  for (const uint64_t leaf : {0, 1, 3, 11}) part.add(leaves[leaf]);
  part.forget({.offset = 3 * kLeaf, .length = kLeaf});
  EXPECT_EQ(part.entries(), 2U) << "0 with 1, and 11";
  part.forget({.offset = 100 * kLeaf, .length = kLeaf});
  EXPECT_EQ(part.entries(), 2U);
}

TEST(SumTree, KeepsLittleOfWhatComesInOrder) {
  const Shape shape{.size_bytes = 1000 * kLeaf, .extent_bytes = kLeaf};
  Tree tree(shape, available());
  for (const Summed& leaf : leaves_of(input(shape.size_bytes), shape)) {
    tree.add(leaf);
    EXPECT_LE(tree.entries(), 10U);
  }
}

TEST(SumTree, KeepsNoMoreThanItMay) {
  const Shape shape{.size_bytes = 4 * Tree::kEntriesMax * uint64_t{kLeaf}, .extent_bytes = kLeaf};
  Tree tree(shape, board::kSumCrc32c);
  for (uint64_t leaf = 0; leaf < shape.leaves(); leaf += 2) tree.add({.subtree = {.first = leaf}});
  EXPECT_EQ(tree.entries(), Tree::kEntriesMax);
}

TEST(SumTree, IgnoresWhatIsNoneOfItsSubtrees) {
  const Shape shape{.size_bytes = 4 * kLeaf, .extent_bytes = kLeaf};
  Tree tree(shape, available());
  tree.add({.subtree = {.first = 4}});
  tree.add({.subtree = {.first = 1, .height = 1}});
  EXPECT_EQ(tree.entries(), 0U);
}

TEST(RangeSummer, SumsHolesAsTheirZeros) {
  const Shape shape{.size_bytes = 300 * kLeaf + 9, .extent_bytes = kLeaf};
  std::vector<uint8_t> bytes = input(shape.size_bytes);
  std::ranges::fill(bytes.begin() + 5000, bytes.begin() + 250'000, uint8_t{0});
  RangeSummer summer(shape, available(), {.offset = 0, .length = shape.size_bytes});
  summer.add(bytes.data(), 5000);
  summer.add_zeros(245'000);
  summer.add(bytes.data() + 250'000, shape.size_bytes - 250'000);
  const std::vector<Summed> summed = summer.take();
  ASSERT_EQ(summed.size(), 1U);
  EXPECT_EQ(summed[0].sums, in_one_pass(bytes));
}

TEST(RangeSummer, SaysNothingOfWhatDidNotCome) {
  const Shape shape{.size_bytes = 8 * kLeaf, .extent_bytes = kLeaf};
  RangeSummer summer(shape, available(), {.offset = kLeaf, .length = 4 * kLeaf});
  const std::vector<uint8_t> bytes = input(shape.size_bytes);
  summer.add(bytes.data() + kLeaf, 2 * kLeaf);
  const std::vector<Summed> summed = summer.take();
  ASSERT_EQ(summed.size(), 1U) << "1; 2 and 3 are half there";
  EXPECT_EQ(summed[0].subtree, (Subtree{.first = 1}));
}

// Run with a preloaded allocator that ends the process (tools/hotmalloc).
TEST(Summer, AllocatesNothingWhileDataMove) {
  const std::vector<uint8_t> bytes = input(64 * kLeaf);
  Summer summer;
  const HotScope hot;
  summer.begin(available(), 64 * kLeaf, false);
  summer.add(bytes.data(), bytes.size());
  const ExtentSums sums = summer.value();
  EXPECT_NE(sums.crc64, 0U);
}

}  // namespace
}  // namespace sluice::sums
