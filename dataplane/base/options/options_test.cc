// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/options/options.h"

#include <gtest/gtest.h>

#include <set>

namespace sluice::options {
namespace {

TEST(Options, EachRowIsSomethingThatPeopleAndProgramsCanUse) {
  std::set<std::string_view> names, flags, keys;
  for (const Option& option : all()) {
    SCOPED_TRACE(option.name);
    EXPECT_TRUE(names.insert(option.name).second);
    EXPECT_FALSE(option.help.empty());
    EXPECT_EQ(option.help.find('\n'), std::string_view::npos);
    EXPECT_FALSE(option.help.ends_with('.'));
    EXPECT_NE(option.kind, Kind::kByType);
    EXPECT_TRUE(option.most == 0 || option.least <= option.most) << "0: all that the type holds";
    if (!option.flag.empty()) {
      EXPECT_TRUE(flags.insert(option.long_flag()).second);
      EXPECT_EQ(option.value.empty(), option.kind == Kind::kSwitch)
          << "what takes a value says what it takes";
    }
    if (option.kind == Kind::kNumber && !option.flag.empty()) {
      EXPECT_NE(option.most, 0) << "a range";
    }
    if (option.kind == Kind::kChoice) {
      EXPECT_FALSE(option.choices.empty());
    }
    if (!option.switched.empty()) {
      EXPECT_NE(find(option.switched), nullptr);
    }
    if (option.configured) {
      EXPECT_TRUE(keys.insert(option.config_key()).second);
      EXPECT_FALSE(option.meaning.empty());
      EXPECT_TRUE(option.kind == Kind::kChoice || option.kind == Kind::kSwitch || option.most != 0);
    }
  }
}

TEST(Options, OfATransferAreMovedAsNumbersWithoutLoss) {
  for (const Option& option : all()) {
    if (option.of != Of::kTransfer) continue;
    SCOPED_TRACE(option.name);
    Options options;
    Wish wish;
    EXPECT_FALSE(option.wish_in(wish));
    for (const int64_t number : {0, 1}) {
      option.set_value(options, number);
      EXPECT_EQ(option.value_in(options), number);
      option.set_wish(wish, number);
      EXPECT_EQ(option.wish_in(wish), number);
    }
  }
}

TEST(Options, AWishCountsAndWhatItDoesNotSayIsTheNodes) {
  Options node;
  node.lanes = 3;
  node.mode = RateMode::kCubic;
  Wish wish;
  EXPECT_EQ(*fill_in(wish, node), node);
  wish.lanes = 5;
  wish.crc = wire::CrcKind::kCrc32c;
  const auto options = fill_in(wish, node);
  ASSERT_TRUE(options);
  EXPECT_EQ(options->lanes, 5U);
  EXPECT_EQ(options->crc, wire::CrcKind::kCrc32c);
  EXPECT_EQ(options->mode, RateMode::kCubic);
}

TEST(Options, WhatIsOutOfRangeIsRefusedAndNamed) {
  const auto error_of = [](const Wish& wish) {
    const auto options = fill_in(wish, {});
    EXPECT_FALSE(options);
    return options ? Error{} : options.error();
  };
  EXPECT_EQ(error_of({.lanes = 17}).code, ErrorCode::kUsage);
  EXPECT_EQ(error_of({.lanes = 17}).message, "lanes = 17: 1 to 16 are possible");
  EXPECT_EQ(error_of({.priority = -101}).message, "priority = -101: -100 to 100 are possible");
  EXPECT_EQ(error_of({.expected_loss = Fraction{955'000}}).message,
            "expected_loss = 95.5: 0 to 95 percent are possible");
  EXPECT_EQ(error_of({.chunk_bytes = 1001}).message, "chunk_bytes = 1001: a multiple of 4, 256 to 32768");
  EXPECT_EQ(error_of({.rate_bps = 5}).message,
            "rate_bps = 5 bit/s: 100 kbit/s is the least; give a unit, as in 10M or 10G");
  EXPECT_EQ(error_of({.min_rate_bps = 999}).code, ErrorCode::kUsage);
  EXPECT_TRUE(fill_in({.rate_bps = 100'000, .min_rate_bps = 1000}, {}));
  EXPECT_TRUE(fill_in({.rate_bps = ~uint64_t{0}}, {})) << "the ports know the most";
  EXPECT_TRUE(
      fill_in({.lanes = 16, .priority = -100, .expected_loss = Fraction{950'000}, .chunk_bytes = 32768}, {}));
}

TEST(Options, AWordIsOneOfItsEnumeration) {
  static_assert(of_word<RateMode>("cubic") == RateMode::kCubic);
  static_assert(word_of(wire::Protection::kAes256Gcm) == "aes-256-gcm");
  const Option& mode = *find("mode");
  EXPECT_EQ(*mode.of_word("fixed", "mode"), 1);
  const auto wrong = mode.of_word("swift\n", "--mode");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message, "--mode = \"swift?\": use adaptive, fixed or cubic");
  for (size_t i = 0; i < std::size(wire::kProtectionNames); ++i)
    EXPECT_EQ(kWords<wire::Protection>[i], wire::kProtectionNames[i]);
  for (size_t i = 0; i < kWords<wire::CrcKind>.size(); ++i)
    EXPECT_EQ(kWords<wire::CrcKind>[i], wire::crc_kind_name(static_cast<wire::CrcKind>(i)));
}

TEST(Options, WhatAnotherVersionKeptIsBroughtIntoRange) {
  EXPECT_EQ(find("lanes")->clamp(0), 1);
  EXPECT_EQ(find("lanes")->clamp(1000), 16);
  EXPECT_EQ(find("timeout_s")->clamp(0), 0) << "none";
  EXPECT_EQ(find("expected_loss")->clamp(999'999), 950'000);
}

TEST(Options, TheReferenceHasARowForEachFlag) {
  const std::string text = reference_markdown();
  EXPECT_NE(text.find("| `--lanes N` | UDP flows side by side;"), std::string::npos);
  EXPECT_NE(text.find("| `-n`, `--dry-run` | only print"), std::string::npos);
  EXPECT_EQ(text.find("chunk_auto"), std::string::npos);
}

}  // namespace
}  // namespace sluice::options
