// SPDX-License-Identifier: Apache-2.0
#include "control/recovery/loss_detector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <thread>

#include "dataplane/base/time_for_test.h"

namespace sluice::recovery {
namespace {

// What a worker does with its window: sets bits, clears words ahead of the highest.
class FakeWindow {
 public:
  explicit FakeWindow(uint64_t bits) : bits_(bits), words_(new std::atomic<uint64_t>[bits / 64]) {
    // All bits begin set, as an earlier lap may have left them: they must not count.
    for (uint64_t i = 0; i < bits / 64; ++i) words_[i] = ~uint64_t{0};
    words_[0] = 0;
    cleared_to_ = 64;
  }
  void receive(uint64_t seq) {
    for (; cleared_to_ <= seq; cleared_to_ += 64) words_[(cleared_to_ % bits_) / 64] = 0;
    words_[(seq % bits_) / 64].fetch_or(uint64_t{1} << (seq % 64));
    end_ = std::max(end_, seq + 1);
  }
  WindowView view() const { return {words_.get(), bits_, end_}; }

 private:
  uint64_t bits_;
  std::unique_ptr<std::atomic<uint64_t>[]> words_;
  uint64_t cleared_to_ = 0;
  uint64_t end_ = 0;
};

std::set<uint64_t> numbers(const std::vector<board::Gap>& gaps) {
  std::set<uint64_t> all;
  for (const board::Gap& gap : gaps) {
    for (uint64_t i = 0; i < gap.count; ++i) {
      EXPECT_TRUE(all.insert(gap.first + i).second) << "reported twice: " << gap.first + i;
    }
  }
  return all;
}

// A worker sets bits while control looks at them: what it sets between two looks at one number must not
// become a run of nothing, which would make a status invalid. This one changes its mind, so that it happens
// often.
TEST(LossDetector, AWorkerThatReceivesMeanwhileLeavesNoRunOfNothing) {
  constexpr uint64_t kBits = 1U << 10;
  std::vector<std::atomic<uint64_t>> words(kBits / 64);
  std::atomic<bool> over = false;
  std::thread worker([&] {
    for (int turn = 0; turn < 1'000'000; ++turn) {
      for (std::atomic<uint64_t>& word : words) word = ~word;
    }
    over = true;
  });
  const WindowView window(words.data(), kBits, kBits / 2);
  std::vector<board::Gap> lost;
  uint64_t empty = 0;
  while (!over) {
    LossDetector detector;
    lost.clear();
    detector.step(window, {}, kMs, 0, &lost);
    detector.step(window, {}, kMs + LossDetector::kReorderMaxNs, SIZE_MAX, &lost);
    empty += static_cast<uint64_t>(std::ranges::count(lost, 0U, &board::Gap::count));
  }
  worker.join();
  EXPECT_EQ(empty, 0U);
}

TEST(LossDetector, ReportsEveryLossPatternOfTwelvePacketsExactlyOnce) {
  constexpr uint64_t kPackets = 12;
  for (uint32_t pattern = 0; pattern < (1U << kPackets); ++pattern) {
    FakeWindow window(256);
    LossDetector detector;
    std::vector<board::Gap> lost;
    uint64_t now_ns = kMs;
    for (uint64_t seq = 0; seq < kPackets; ++seq, now_ns += kMs) {
      if (pattern & (1U << seq)) window.receive(seq);
      detector.step(window.view(), {}, now_ns, 4096, &lost);
    }
    // Only a probe tells of a tail that was lost.
    for (int i = 0; i < 10; ++i, now_ns += 10 * kMs) {
      detector.step(window.view(), {.probe_end = kPackets}, now_ns, 4096, &lost);
    }
    const std::set<uint64_t> reported = numbers(lost);
    for (uint64_t seq = 0; seq < kPackets; ++seq) {
      ASSERT_EQ(reported.count(seq), (pattern >> seq & 1U) ? 0U : 1U)
          << "pattern " << pattern << " seq " << seq;
    }
    ASSERT_EQ(detector.settled_below(), kPackets);
  }
}

TEST(LossDetector, EveryOrderOfSixPacketsWithinTheReorderingTimeIsNoLoss) {
  std::vector<uint64_t> order(6);
  std::iota(order.begin(), order.end(), 0);
  do {
    FakeWindow window(256);
    LossDetector detector;
    std::vector<board::Gap> lost;
    uint64_t now_ns = kMs;
    for (const uint64_t seq : order) {
      window.receive(seq);
      detector.step(window.view(), {}, now_ns, 4096, &lost);
      now_ns += LossDetector::kReorderStartNs / 8;
    }
    for (int i = 0; i < 10; ++i, now_ns += 10 * kMs) {
      detector.step(window.view(), {.probe_end = 6}, now_ns, 4096, &lost);
    }
    ASSERT_TRUE(lost.empty());
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(LossDetector, WaitsForThreeLaterPacketsHoweverOldTheGapIs) {
  FakeWindow window(256);
  LossDetector detector;
  std::vector<board::Gap> lost;
  window.receive(0);
  window.receive(2);
  window.receive(3);
  detector.step(window.view(), {}, 1 * kMs, 16, &lost);
  detector.step(window.view(), {}, 1000 * kMs, 16, &lost);
  EXPECT_TRUE(lost.empty());
  window.receive(4);
  detector.step(window.view(), {}, 1001 * kMs, 16, &lost);
  EXPECT_TRUE(lost.empty()) << "three later packets only now: the reordering time begins";
  detector.step(window.view(), {}, 1004 * kMs, 16, &lost);
  EXPECT_EQ(numbers(lost), std::set<uint64_t>{1});
}

TEST(LossDetector, WaitsForTheReorderingTimeHoweverManyPacketsFollow) {
  FakeWindow window(1024);
  LossDetector detector;
  std::vector<board::Gap> lost;
  for (uint64_t seq = 1; seq < 500; ++seq) window.receive(seq);
  detector.step(window.view(), {}, 10 * kMs, 16, &lost);
  detector.step(window.view(), {}, 10 * kMs + LossDetector::kReorderStartNs - 1, 16, &lost);
  EXPECT_TRUE(lost.empty());
  detector.step(window.view(), {}, 10 * kMs + LossDetector::kReorderStartNs, 16, &lost);
  EXPECT_EQ(numbers(lost), std::set<uint64_t>{0});
}

TEST(LossDetector, AProbeAloneRevealsATailOfWhichNothingArrived) {
  FakeWindow window(256);
  LossDetector detector;
  std::vector<board::Gap> lost;
  detector.step(window.view(), {.probe_end = 5}, 1 * kMs, 16, &lost);
  detector.step(window.view(), {.probe_end = 5}, 10 * kMs, 16, &lost);
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost[0].first, 0U);
  EXPECT_EQ(lost[0].count, 5U);
}

TEST(LossDetector, KeepsWhatDoesNotFitForTheNextCall) {
  FakeWindow window(256);
  LossDetector detector;
  for (uint64_t seq = 1; seq < 40; seq += 2) window.receive(seq);  // Every even one is lost.
  std::vector<board::Gap> lost;
  detector.step(window.view(), {.probe_end = 40}, 1 * kMs, 3, &lost);
  detector.step(window.view(), {.probe_end = 40}, 10 * kMs, 3, &lost);
  EXPECT_EQ(lost.size(), 3U);
  EXPECT_EQ(detector.settled_below(), 6U);
  detector.step(window.view(), {.probe_end = 40}, 11 * kMs, 0, &lost);
  EXPECT_EQ(lost.size(), 3U);
  for (int i = 0; i < 10; ++i) detector.step(window.view(), {.probe_end = 40}, 12 * kMs, 3, &lost);
  EXPECT_EQ(numbers(lost).size(), 20U);
}

TEST(LossDetector, LeavesWhatFellOutOfTheWindowToNeed) {
  FakeWindow window(256);
  LossDetector detector;
  std::vector<board::Gap> lost;
  window.receive(1000);
  detector.step(window.view(), {}, 1 * kMs, 16, &lost);
  detector.step(window.view(), {}, 10 * kMs, 16, &lost);
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost[0].first, 1001U - 128U);
  EXPECT_EQ(detector.fell_out(), 1001U - 128U);
}

TEST(LossDetector, ComesToAnEndAtTheLargestNumbers) {
  constexpr uint64_t kEnd = ~uint64_t{0};
  std::vector<std::atomic<uint64_t>> words(4);
  const WindowView window(words.data(), 256, kEnd);
  LossDetector detector;
  std::vector<board::Gap> lost;
  detector.step(window, {.probe_end = kEnd}, 1 * kMs, 16, &lost);
  detector.step(window, {.probe_end = kEnd}, 10 * kMs, 16, &lost);
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost[0].first, kEnd - 128);
  EXPECT_EQ(lost[0].count, 128U);
  EXPECT_EQ(detector.settled_below(), kEnd);
}

TEST(LossDetector, LatePacketsLengthenTheReorderingTimeAndQuietShortensIt) {
  FakeWindow window(256);
  LossDetector detector;
  std::vector<board::Gap> lost;
  uint64_t now_ns = kMs;
  for (uint64_t late = 1; late < 20; ++late) {
    now_ns += 60 * kMs;
    detector.step(window.view(), {.late_chunks = late}, now_ns, 16, &lost);
  }
  EXPECT_EQ(detector.reorder_ns(), LossDetector::kReorderMaxNs);
  for (int i = 0; i < 200; ++i) {
    now_ns += 1000 * kMs;
    detector.step(window.view(), {.late_chunks = 19}, now_ns, 16, &lost);
  }
  EXPECT_EQ(detector.reorder_ns(), LossDetector::kReorderMinNs);
}

// Random loss, delay and duplication over many laps of the window: with delays shorter than the
// reordering time, exactly the dropped numbers are reported.
TEST(LossDetector, ReportsExactlyTheDroppedNumbersOverManyLaps) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    FakeWindow window(4096);
    LossDetector detector;
    std::vector<board::Gap> lost;
    std::set<uint64_t> dropped;
    std::multimap<uint64_t, uint64_t> in_flight;  // Numbers by the time of their arrival.
    uint64_t now_ns = kMs;
    constexpr uint64_t kPackets = 20000;
    auto deliver = [&](uint64_t until_ns) {
      while (!in_flight.empty() && in_flight.begin()->first <= until_ns) {
        window.receive(in_flight.begin()->second);
        in_flight.erase(in_flight.begin());
      }
    };
    for (uint64_t seq = 0; seq < kPackets; ++seq, now_ns += 5'000) {
      if (random() % 10 == 0) {
        dropped.insert(seq);
      } else {
        in_flight.emplace(now_ns + random() % 400'000, seq);
        if (random() % 50 == 0) in_flight.emplace(now_ns + random() % 400'000, seq);
      }
      deliver(now_ns);
      if (seq % 100 == 0) detector.step(window.view(), {}, now_ns, 4096, &lost);
    }
    deliver(~uint64_t{0});
    for (int i = 0; i < 5; ++i, now_ns += 10 * kMs) {
      detector.step(window.view(), {.probe_end = kPackets}, now_ns, 4096, &lost);
    }
    EXPECT_EQ(numbers(lost), dropped) << "seed " << seed;
    EXPECT_EQ(detector.fell_out(), 0U);
  }
}

}  // namespace
}  // namespace sluice::recovery
