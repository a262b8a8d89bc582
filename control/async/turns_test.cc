// Time is what the test says.
// SPDX-License-Identifier: Apache-2.0
#include "control/async/turns.h"

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include <sstream>

namespace sluice::async {
namespace {

constexpr uint64_t kMs = 1'000'000;

uint64_t g_now_ns = 0;

class TurnMeterTest : public testing::Test {
 protected:
  TurnMeterTest() : before_(spdlog::default_logger()) {
    const auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(log_);
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", sink));
    spdlog::set_pattern("%v");
  }
  ~TurnMeterTest() override { spdlog::set_default_logger(before_); }

  void turn(const char* name, uint64_t took_ns) {
    const TurnMeter::Scope scope(meter_, name);
    g_now_ns += took_ns;
  }

  TurnMeter meter_{
      [] { return std::chrono::steady_clock::time_point() + std::chrono::nanoseconds(g_now_ns); }};
  std::ostringstream log_;
  const std::shared_ptr<spdlog::logger> before_;
};

TEST_F(TurnMeterTest, TheLongestTurnIsKeptWithItsName) {
  EXPECT_EQ(meter_.longest_ns(), 0U);
  EXPECT_EQ(meter_.longest_name(), "");
  turn("the board", 5);
  turn("a transfer", 7);
  EXPECT_EQ(meter_.longest_ns(), 7U);
  EXPECT_EQ(meter_.longest_name(), "a transfer");
  g_now_ns += 1'000'000 * kMs;  // between turns
  turn("the board", 6);
  turn("another", 7);
  EXPECT_EQ(meter_.longest_ns(), 7U);
  EXPECT_EQ(meter_.longest_name(), "a transfer") << "the first of equal ones";
  turn("the API", 8);
  EXPECT_EQ(meter_.longest_name(), "the API");
  EXPECT_EQ(meter_.turns(), 5U);
}

TEST_F(TurnMeterTest, ATurnWithinAnotherCountsForThatOne) {
  {
    const TurnMeter::Scope scope(meter_, "outer");
    g_now_ns += 1;
    turn("inner", 100);
    turn("inner", 100);
    EXPECT_EQ(meter_.turns(), 0U) << "it has not ended";
  }
  EXPECT_EQ(meter_.turns(), 1U);
  EXPECT_EQ(meter_.longest_ns(), 201U);
  EXPECT_EQ(meter_.longest_name(), "outer");
  turn("next", 300);
  EXPECT_EQ(meter_.longest_name(), "next");
}

TEST_F(TurnMeterTest, ALineIsLoggedForWhatAnybodyNoticesAndOnlyWhenItIsTheLongest) {
  turn("the board", TurnMeter::kNoticedNs - 1);
  EXPECT_EQ(log_.str(), "");
  turn("the board", TurnMeter::kNoticedNs);
  EXPECT_EQ(log_.str(), "control's loop was held up for 20 ms by the board\n");
  turn("a transfer", TurnMeter::kNoticedNs);
  turn("a transfer", 19 * kMs);
  turn("a transfer", 31 * kMs);
  turn("a transfer", 30 * kMs);
  EXPECT_EQ(log_.str(),
            "control's loop was held up for 20 ms by the board\n"
            "control's loop was held up for 31 ms by a transfer\n");
}

}  // namespace
}  // namespace sluice::async
