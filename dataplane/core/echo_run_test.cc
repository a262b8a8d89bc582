// SPDX-License-Identifier: Apache-2.0
#include "dataplane/core/echo_run.h"

#include <gtest/gtest.h>

#include <set>

namespace sluice {
namespace {

constexpr uint64_t kBeginNs = 1'000'000'000;
constexpr uint64_t kRttNs = 50'000'000;

EchoRun run_of(uint32_t asked, uint64_t seed = 7) {
  return {{.asked = asked, .bytes = 100, .seed = seed}, kBeginNs};
}

std::vector<uint8_t> payload(const EchoRun& run, uint64_t number, size_t bytes = 100) {
  std::vector<uint8_t> out(bytes);
  run.fill(number, out);
  return out;
}

TEST(EchoRun, IsOverWhereNoneIsAskedFor) {
  const EchoRun run = run_of(0);
  EXPECT_TRUE(run.over());
  EXPECT_FALSE(run.has_unsent());
  EXPECT_FALSE(run.awaited());
  EXPECT_EQ(run.is_new(0), EchoRun::Came::kNeverSent);
}

TEST(EchoRun, IsOverWhenAllAreBack) {
  EchoRun run = run_of(3);
  for (uint64_t number = 0; number < 3; ++number) {
    EXPECT_EQ(run.is_new(number), EchoRun::Came::kNeverSent);
    EXPECT_EQ(run.next(), number);
    run.sent(kBeginNs + number, kRttNs);
    EXPECT_EQ(run.is_new(number), EchoRun::Came::kFirst);
  }
  EXPECT_FALSE(run.has_unsent());
  for (const uint64_t number : {2U, 0U, 1U}) {
    EXPECT_FALSE(run.over());
    run.came(number);
    EXPECT_EQ(run.is_new(number), EchoRun::Came::kAgain);
  }
  EXPECT_TRUE(run.over());
  EXPECT_EQ(run.is_new(UINT64_MAX), EchoRun::Came::kNeverSent);
}

TEST(EchoRun, WaitsForWhatIsLateAndThenGivesUp) {
  EchoRun run = run_of(2);
  run.look(kBeginNs + 60 * EchoRun::kWaitNs);
  EXPECT_FALSE(run.over()) << "not all have left, whatever keeps them";
  run.sent(kBeginNs, kRttNs);
  run.sent(kBeginNs + 5, kRttNs);
  run.came(0);
  EXPECT_EQ(run.waits_until_ns(), kBeginNs + 5 + kRttNs + EchoRun::kWaitNs);
  run.look(run.waits_until_ns() - 1);
  EXPECT_TRUE(run.awaited());
  run.look(run.waits_until_ns());
  EXPECT_TRUE(run.over());
}

TEST(EchoRun, MakesTheSameOfANumberAgain) {
  const EchoRun run = run_of(100);
  const EchoRun other = run_of(100, 8);
  std::set<std::vector<uint8_t>> seen;
  for (uint64_t number = 0; number < 100; ++number) {
    EXPECT_EQ(payload(run, number), payload(run, number));
    seen.insert(payload(run, number));
  }
  EXPECT_EQ(seen.size(), 54U) << "50 by chance, and the four that are all alike";
  EXPECT_EQ(payload(run, 1), std::vector<uint8_t>(100, 0x00));
  EXPECT_EQ(payload(run, 3), std::vector<uint8_t>(100, 0xFF));
  EXPECT_EQ(payload(run, 5), std::vector<uint8_t>(100, 0x55));
  EXPECT_EQ(payload(run, 7), std::vector<uint8_t>(100, 0xAA));
  EXPECT_NE(payload(run, 2), payload(other, 2));
  // A shorter one is the beginning of a longer one.
  const std::vector<uint8_t> whole = payload(run, 4);
  EXPECT_EQ(payload(run, 4, 13), std::vector<uint8_t>(whole.begin(), whole.begin() + 13));
}

}  // namespace
}  // namespace sluice
