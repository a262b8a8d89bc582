// Digests of what a pack brings, and lists that want others.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "control/exports/unpack_fixture.h"

namespace sluice::exports {
namespace {

constexpr digests::Mask kMd5 = digests::bit_of(digests::Kind::kMd5);
const digests::Values kOfAbc = {{.kind = digests::Kind::kMd5, .hex = "900150983cd24fb0d6963f7d28e17f72"}};

class UnpackDigestsTest : public UnpackTest {
 protected:
  // Two files and a hard link to the first.
  Content content(const digests::Values& expected = {}) const {
    Content content;
    content.add_file("a", "abc");
    content.add_file("b", "");
    content.add(hard_link("c", "a"));
    content.entries.front().expected = expected;
    return content;
  }
};

INSTANTIATE_TEST_SUITE_P(FileSystems, UnpackDigestsTest, testing::Values("/tmp", "/dev/shm"));

TEST_P(UnpackDigestsTest, AreOfEachNameThatWasGiven) {
  write(root_ / "data/b", "stood there");
  const auto one = unpacker({.digests = kMd5});
  ASSERT_TRUE(one->stage(content().pack()));
  ASSERT_TRUE(one->commit());
  EXPECT_EQ(missing(*one), (Names{{"b", Failure::kExists}}));
  const std::vector<digests::Named> named = one->digests();
  ASSERT_EQ(named.size(), 2U);
  EXPECT_EQ(named[0], (digests::Named{.path = "a", .size_bytes = 3, .target = "", .values = kOfAbc}));
  EXPECT_EQ(named[1], (digests::Named{.path = "c", .size_bytes = 0, .target = "a", .values = {}}));
}

TEST_P(UnpackDigestsTest, WhatTheSourceExpectsOtherwiseIsNotStored) {
  EXPECT_EQ(unpack(content(kOfAbc), {.digests = kMd5}), Names());
  fs::remove(root_ / "data/a");
  fs::remove(root_ / "data/b");
  fs::remove(root_ / "data/c");
  const digests::Values other = {{.kind = digests::Kind::kMd5, .hex = std::string(32, '0')}};
  EXPECT_EQ(unpack(content(other), {.digests = kMd5}).at("a"), Failure::kNotAsListed);
  EXPECT_FALSE(there("a"));
  EXPECT_TRUE(there("b"));
}

TEST_P(UnpackDigestsTest, AListOfThisNodeGoesBeforeWhatTheSourceSays) {
  const auto list = std::make_shared<const digests::Expected>(
      digests::Expected{{"b", {{.kind = digests::Kind::kMd5, .hex = std::string(32, '0')}}}});
  const digests::Values other = {{.kind = digests::Kind::kMd5, .hex = std::string(32, '0')}};
  EXPECT_EQ(unpack(content(other), {.digests = kMd5, .expected = list}),
            (Names{{"b", Failure::kNotAsListed}}));
  EXPECT_EQ(text("a"), "abc");
}

TEST_P(UnpackDigestsTest, NoneAreComputedUnasked) {
  const auto one = unpacker();
  ASSERT_TRUE(one->stage(content().pack()));
  ASSERT_TRUE(one->commit());
  EXPECT_TRUE(one->digests().empty());
}

}  // namespace
}  // namespace sluice::exports
