// SPDX-License-Identifier: Apache-2.0
#include "tools/wire/settings.h"

#include <gtest/gtest.h>

namespace sluice::emulator {
namespace {

Settings with(const char* json) {
  auto settings = changed(Settings{}, Json::parse(json));
  EXPECT_TRUE(settings) << settings.error().message;
  return *settings;
}

std::string error_of(const char* json) {
  const auto settings = changed(Settings{}, Json::parse(json));
  return settings ? std::string("accepted") : settings.error().message;
}

TEST(Settings, SurviveTheWayThroughJson) {
  Settings settings;
  settings.rate = {.bits_per_s = 12'345'678'901, .queue_bytes = 99, .overhead_bytes = 24};
  settings.loss = {.probability = 0.1,
                   .burst = {.p = 0.01, .r = 0.2, .loss_bad = 0.9, .loss_good = 0.001},
                   .length_l0_bytes = 1024,
                   .every_nth = 7,
                   .packets = {3, 1, 1ULL << 60}};
  settings.corrupt = {
      .bits = 0.1, .bits_repaired = 0.2, .swap_words = 0.3, .truncate = 0.4, .forge = 0.5, .bits_count = 5};
  settings.duplicate = {.probability = 0.25, .delay_us = 1.5};
  settings.delay = {.fixed_us = 1,
                    .exponential_us = 2,
                    .exponential_us_per_byte = 3,
                    .exponential_us_over_ln = 1'024'000,
                    .uniform_us = 4,
                    .normal_us = 5,
                    .keep_order = true};
  settings.reorder = {.probability = 0.5, .distance = 9, .hold_us_max = 77};
  settings.length_of = LengthOf::kFrame;
  const auto read = changed(Settings{}, Json::parse(to_json(settings).dump()));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, settings);
  EXPECT_EQ(with("{}"), Settings{});
}

TEST(Settings, ChangeOnlyWhatIsNamed) {
  const Settings base = with(R"({"loss": {"probability": 0.5, "every_nth": 3}, "delay": {"fixed_us": 9}})");
  const auto next = changed(base, Json::parse(R"({"loss": {"every_nth": 4}, "length_of": "frame"})"));
  ASSERT_TRUE(next);
  EXPECT_EQ(next->loss.probability, 0.5);
  EXPECT_EQ(next->loss.every_nth, 4U);
  EXPECT_EQ(next->delay.fixed_us, 9);
  EXPECT_EQ(next->length_of, LengthOf::kFrame);
}

TEST(Settings, NullGoesBackToTheDefault) {
  const Settings base =
      with(R"({"loss": {"probability": 0.5, "every_nth": 3}, "corrupt": {"bits_count": 4}})");
  const auto next = changed(base, Json::parse(R"({"loss": null, "corrupt": {"bits_count": null}})"));
  ASSERT_TRUE(next);
  EXPECT_EQ(*next, Settings{});
}

TEST(Settings, TakeRatesAsPeopleWriteThem) {
  EXPECT_EQ(with(R"({"rate": {"bits_per_s": "2.5G"}})").rate.bits_per_s, 2'500'000'000U);
  EXPECT_EQ(with(R"({"rate": {"bits_per_s": 1e6}})").rate.bits_per_s, 1'000'000U);
}

TEST(Settings, NameWhatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {R"({"los": {}})", "los: is no setting"},
      {R"({"loss": {"propability": 0.1}})", "loss.propability: is no setting"},
      {R"({"loss": {"propability": null}})", "loss.propability: is no setting"},
      {R"({"loss": {"burst": {"q": 0.1}}})", "loss.burst.q: is no setting"},
      {R"({"loss": 0.1})", "loss: expected an object"},
      {R"([])", "settings: expected an object"},
      {R"({"loss": {"probability": 1.01}})", "loss.probability: expected a number from 0 to 1"},
      {R"({"loss": {"probability": -0.1}})", "loss.probability: expected a number"},
      {R"({"loss": {"probability": "high"}})", "loss.probability: expected a number"},
      {R"({"loss": {"probability": true}})", "loss.probability: expected a number"},
      {R"({"loss": {"every_nth": 1.5}})", "loss.every_nth: expected a whole number"},
      {R"({"loss": {"every_nth": -1}})", "loss.every_nth: expected a whole number"},
      {R"({"loss": {"packets": 5}})", "loss.packets: expected a list"},
      {R"({"loss": {"packets": [0]}})", "loss.packets: expected a list"},
      {R"({"loss": {"burst": {"p": 0.1}}})", "loss.burst.r: is 0"},
      {R"({"delay": {"keep_order": 1}})", "delay.keep_order: expected true or false"},
      {R"({"delay": {"fixed_us": 1e10}})", "delay.fixed_us: expected a number from 0 to 3600000000"},
      {R"({"reorder": {"distance": 0}})", "reorder.distance: expected a whole number from 1 to 1024"},
      {R"({"rate": {"bits_per_s": "fast"}})", "rate.bits_per_s: 'fast' is not a rate"},
      {R"({"rate": {"bits_per_s": "11T"}})", "rate.bits_per_s: is above"},
      {R"({"length_of": "packet"})", "length_of: expected"},
      {R"({"corrupt": {"bits_count": 0}})", "corrupt.bits_count: expected"},
  };
  for (const auto& [json, expected] : cases) {
    EXPECT_NE(error_of(json).find(expected), std::string::npos) << json << " -> " << error_of(json);
    EXPECT_EQ(error_of(json).find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace sluice::emulator
