// What every law of rate control has to keep to, whatever it is told: it is told it by a peer.
// SPDX-License-Identifier: Apache-2.0
#include "control/rate/controller.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <random>
#include <set>
#include <string>

#include "control/rate/adaptive_rate.h"
#include "control/rate/cubic_rate.h"
#include "control/rate/fixed_rate.h"
#include "dataplane/base/time_for_test.h"

namespace sluice::rate {
namespace {

struct Law {
  const char* name;
  std::function<std::unique_ptr<Controller>(uint64_t cap_bps, uint64_t now_ns)> make;
};

// A new law gets a line here.
const Law kLaws[] = {
    {"FixedRate",
     [](uint64_t cap_bps, uint64_t now_ns) { return std::make_unique<FixedRate>(cap_bps, 0, now_ns); }},
    {"AdaptiveRate",
     [](uint64_t cap_bps, uint64_t now_ns) { return std::make_unique<AdaptiveRate>(cap_bps, 0, now_ns); }},
    {"CubicRate",
     [](uint64_t cap_bps, uint64_t now_ns) { return std::make_unique<CubicRate>(cap_bps, 0, now_ns); }},
};

class ControllerTest : public testing::TestWithParam<Law> {};

TEST_P(ControllerTest, NeverGoesAboveItsCapWhateverIsReported) {
  std::mt19937_64 random(7);
  // Sometimes small, sometimes near the end of the numbers, sometimes going backwards.
  const auto any = [&] { return random() >> random() % 64; };
  for (const uint64_t cap_bps : {0ULL, 1ULL, 10'000'000'000ULL, (1ULL << 53) + 1, (1ULL << 63) + 1, ~0ULL}) {
    uint64_t now_ns = 1'000'000'000;
    const auto controller = GetParam().make(cap_bps, now_ns);
    EXPECT_EQ(controller->cap_bps(), cap_bps);
    EXPECT_LE(controller->rate_bps(), cap_bps);
    for (int i = 0; i < 20'000; ++i) {
      now_ns += any() % (i % 100 == 0 ? 20'000'000'000 : 2'000'000);
      const PathReport report{.sent = any(),
                              .received_end = any(),
                              .received = any(),
                              .lost = any(),
                              .statuses = any(),
                              .bytes_received = any(),
                              .credit_extents = any(),
                              .opened_extents = any(),
                              .last_peer_ns = i % 2 == 0 ? now_ns : any(),
                              .rtt_ns = any(),
                              .rtt_min_ns = any(),
                              .delay_min_ns = static_cast<int64_t>(any()),
                              .delay_spread_ns = any(),
                              .delay_known = i % 3 == 0,
                              .datagram_bytes = static_cast<uint32_t>(any())};
      const uint64_t rate_bps = controller->step(report, now_ns);
      ASSERT_LE(rate_bps, cap_bps) << i;
      ASSERT_EQ(rate_bps, controller->rate_bps()) << i;
      ASSERT_NE(condition_name(controller->condition()), "unknown") << i;
      ASSERT_EQ(controller->cap_bps(), cap_bps) << i;
    }
  }
}

// As above, with counters that grow as they do on a path, so that rounds end.
TEST_P(ControllerTest, NeverGoesAboveItsCapWhateverIsSaidOfDelays) {
  std::mt19937_64 random(8);
  const auto any = [&] { return random() >> random() % 64; };
  constexpr uint64_t kCapBps = 1'000'000'000;
  uint64_t now_ns = 1'000'000'000;
  const auto controller = GetParam().make(kCapBps, now_ns);
  PathReport report{.rtt_ns = 20'000'000, .rtt_min_ns = 20'000'000, .datagram_bytes = 8300};
  for (int i = 0; i < 100'000; ++i) {
    now_ns += 1'000'000;
    const uint64_t sent = controller->rate_bps() / 8 / 1000 / 8300 + 1;
    const uint64_t lost = random() % 50 == 0 ? sent / 3 : 0;
    report.sent += sent;
    report.received_end += sent;
    report.received += sent - lost;
    report.lost += lost;
    ++report.statuses;
    report.last_peer_ns = now_ns;
    report.delay_known = true;
    report.delay_min_ns = static_cast<int64_t>(i / 5000 % 2 == 0 ? any() : any() % 4'000'000);
    report.delay_spread_ns = i / 5000 % 3 == 0 ? any() : any() % 4'000'000;
    ASSERT_LE(controller->step(report, now_ns), kCapBps) << i;
    ASSERT_GT(controller->rate_bps(), 0U) << i;
  }
}

TEST_P(ControllerTest, ReachesItsCapOnAPathWithoutLoss) {
  constexpr uint64_t kMs = 1'000'000;
  for (const uint64_t cap_bps : {uint64_t{1'000'000}, uint64_t{100'000'000'000}, ~uint64_t{0}}) {
    uint64_t now_ns = 1'000 * kMs;
    const auto controller = GetParam().make(cap_bps, now_ns);
    PathReport report{.rtt_ns = kMs, .rtt_min_ns = kMs, .delay_known = true, .datagram_bytes = 8192};
    for (int i = 0; i < 10'000 && controller->rate_bps() != cap_bps; ++i) {
      now_ns += kMs;
      report.sent += controller->rate_bps() / 8 / 8192 / 1000;
      report.received = report.received_end = report.sent;
      ++report.statuses;
      report.last_peer_ns = now_ns;
      (void)controller->step(report, now_ns);
    }
    EXPECT_EQ(controller->rate_bps(), cap_bps);
    EXPECT_EQ(controller->condition(), Condition::kRunning);
  }
}

// Every datagram is lost, then every other one, then it is well again: nobody falls silent, and nobody stays
// slow.
TEST_P(ControllerTest, NeverFallsSilentWhileThePeerIsHeard) {
  constexpr uint64_t kMs = 1'000'000;
  uint64_t now_ns = 1'000 * kMs;
  const auto controller = GetParam().make(100'000'000, now_ns);
  PathReport report{.rtt_ns = kMs, .rtt_min_ns = kMs, .delay_known = true, .datagram_bytes = 1500};
  double owed = 0;
  for (int i = 0; i < 60'000; ++i) {
    now_ns += kMs;
    owed += static_cast<double>(controller->rate_bps()) / 8 / 1500 / 1000;
    const auto left = static_cast<uint64_t>(owed) - report.sent;
    report.sent += left;
    report.received_end = report.sent;
    report.received += i < 2'000 ? 0 : i < 4'000 ? left / 2 : left;
    report.lost = report.received_end - report.received;
    ++report.statuses;
    report.last_peer_ns = now_ns;
    ASSERT_GT(controller->step(report, now_ns), 0U) << i;
  }
  EXPECT_GT(controller->rate_bps(), 80'000'000U);
}

// What it says and what it does agree: an operator reads the one to understand the other.
TEST_P(ControllerTest, StopsForAPeerThatStaysSilentAndGoesOnWhenItIsHeard) {
  uint64_t now_ns = 5 * kSecond;
  const auto controller = GetParam().make(1'000'000'000, now_ns);
  PathReport report{.last_peer_ns = now_ns};
  uint64_t crawl_bps = 0;
  for (int i = 0; i < 60'000 && controller->condition() != Condition::kStopped; ++i) {
    now_ns += 1'000'000;
    (void)controller->step(report, now_ns);
    if (controller->condition() != Condition::kCrawling) continue;
    if (crawl_bps == 0) crawl_bps = controller->rate_bps();
    ASSERT_EQ(controller->rate_bps(), crawl_bps) << "it crawls, it does not fade away";
  }
  EXPECT_GT(crawl_bps, 0U);
  EXPECT_EQ(controller->condition(), Condition::kStopped);
  EXPECT_EQ(controller->rate_bps(), 0U);
  report.last_peer_ns = now_ns;
  EXPECT_GT(controller->step(report, now_ns + 1), 0U);
  EXPECT_NE(controller->condition(), Condition::kStopped);
}

INSTANTIATE_TEST_SUITE_P(Laws, ControllerTest, testing::ValuesIn(kLaws),
                         [](const auto& law) { return std::string(law.param.name); });

TEST(Condition, EachHasANameOfItsOwn) {
  std::set<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(Condition::kStopped); ++i) {
    const std::string_view name = condition_name(static_cast<Condition>(i));
    EXPECT_NE(name, "unknown");
    EXPECT_TRUE(names.insert(name).second) << name;
  }
  EXPECT_EQ(condition_name(static_cast<Condition>(99)), "unknown");
}

}  // namespace
}  // namespace sluice::rate
