// SPDX-License-Identifier: Apache-2.0
#include "control/rate/path_size.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>

#include "dataplane/base/time_for_test.h"
#include "dataplane/core/padded_probes.h"

namespace sluice::rate {
namespace {

constexpr uint64_t kTickNs = kMs;

// A lane over a path that carries datagrams up to a size, loses a part of the rest, and takes a round trip to
// say so.
class Path {
 public:
  explicit Path(uint32_t chunk_bytes) : chunk_bytes_(chunk_bytes), search_(chunk_bytes, true) {}

  uint32_t carries = 9000;
  double loss = 0;
  uint64_t full_until_ns = 0;  // its queue: nothing arrives
  uint64_t rtt_ns = 10 * kMs;
  uint32_t per_tick = 10;
  double padded_bytes_per_tick = 1e9;  // so fast the lane is allowed to be
  bool answers = true;
  bool knows_padding = true;
  uint64_t asked = 0;

  bool arrives(uint32_t chunk_bytes) {
    return now_ns_ >= full_until_ns && chunk_bytes + 100 <= carries &&
           std::uniform_real_distribution<>(0, 1)(random_) >= loss;
  }
  void run(uint64_t ns) {
    for (const uint64_t end_ns = now_ns_ + ns; now_ns_ < end_ns && !search_.found(); now_ns_ += kTickNs)
      tick();
  }
  std::optional<uint32_t> found() const { return search_.found(); }
  uint64_t now_ns() const { return now_ns_; }

 private:
  void tick() {
    for (uint32_t i = 0; i < per_tick; ++i) {
      ++reading_.sent;
      if (arrives(chunk_bytes_)) ++peer_.arrived;
    }
    if (answers) {
      ++peer_.statuses;
      reports_.push_back({now_ns_ + rtt_ns, peer_});
    }
    while (!reports_.empty() && reports_.front().first <= now_ns_) {
      const LaneReading& news = reports_.front().second;
      reading_.arrived = news.arrived;
      reading_.statuses = news.statuses;
      reading_.padded_came = news.padded_came;
      reading_.rtt_ns = rtt_ns;
      reports_.pop_front();
    }
    for (const SizeAsk& ask : search_.step(reading_, now_ns_)) {
      asked += ask.count;
      queue_.begin(now_ns_);
      EXPECT_TRUE(queue_.add(ask.chunk_bytes, ask.count));
    }
    allowed_bytes_ = std::min(allowed_bytes_ + padded_bytes_per_tick, padded_bytes_per_tick);
    for (; !queue_.empty() && allowed_bytes_ > 0; queue_.pop()) {
      const uint32_t bytes = queue_.front();
      allowed_bytes_ -= bytes;
      ++reading_.padded_sent;
      if (knows_padding && arrives(bytes)) count(bytes);
    }
  }
  void count(uint32_t bytes) {
    for (uint64_t& packed : peer_.padded_came) {
      if (packed != 0 && packed >> 32 != bytes) continue;
      packed = (uint64_t{bytes} << 32) | ((packed & UINT32_MAX) + 1);
      return;
    }
    std::move_backward(peer_.padded_came.begin(), peer_.padded_came.end() - 1, peer_.padded_came.end());
    peer_.padded_came[0] = uint64_t{bytes} << 32 | 1;
  }

  const uint32_t chunk_bytes_;
  SizeSearch search_;
  PaddedQueue queue_;
  double allowed_bytes_ = 0;
  LaneReading reading_;
  LaneReading peer_;
  std::deque<std::pair<uint64_t, LaneReading>> reports_;
  uint64_t now_ns_ = 1;
  std::mt19937_64 random_{7};
};

TEST(SizeSearch, AGoodPathIsNeverProbed) {
  for (const double loss : {0.0, 0.1, 0.5}) {
    Path path(8192);
    path.loss = loss;
    path.run(10 * kSecond);
    EXPECT_EQ(path.asked, 0U) << loss;
  }
}

TEST(SizeSearch, FindsWhatABlackHoleCarries) {
  for (const uint32_t carries : {1280U, 1400U, 1492U, 1500U, 1700U, 4352U, 8000U, 8283U}) {
    Path path(8192);
    path.carries = carries;
    path.run(5 * kSecond);
    ASSERT_TRUE(path.found()) << carries;
    EXPECT_LE(*path.found() + 100, carries);
    EXPECT_GT(*path.found() + 100, carries - carries / 14) << "near enough";
    EXPECT_LT(path.now_ns(), 2 * kSecond) << carries;
  }
}

TEST(SizeSearch, FindsItOnLongAndLossyPathsToo) {
  Path path(8904);
  path.carries = 1500;
  path.rtt_ns = 300 * kMs;
  path.loss = 0.2;
  path.run(20 * kSecond);
  ASSERT_TRUE(path.found());
  EXPECT_LE(*path.found(), 1400U);
  EXPECT_GE(*path.found(), 1380U - 100);
}

// A law that sees all be lost goes down to a few datagrams a second.
TEST(SizeSearch, FindsItAtTheLeastRateToo) {
  Path path(8192);
  path.carries = 4371;
  path.padded_bytes_per_tick = 132'000 / 8e3;
  path.run(6 * kSecond);
  ASSERT_TRUE(path.found());
  EXPECT_LE(*path.found() + 100, 4371U);
  EXPECT_GT(*path.found() + 100, 3000U);
}

TEST(SizeSearch, FindsAPathThatShrinksInMidTransfer) {
  Path path(8192);
  path.run(3 * kSecond);
  EXPECT_FALSE(path.found());
  path.carries = 1500;
  path.run(3 * kSecond);
  ASSERT_TRUE(path.found());
  EXPECT_EQ(*path.found(), 1400U);
}

TEST(SizeSearch, FindsItWithTheLastFewDatagramsAsWell) {
  Path path(8192);
  path.carries = 1500;
  path.per_tick = 0;
  for (int i = 0; i < 200 && !path.found(); ++i) {  // one is sent again now and then
    path.per_tick = 1;
    path.run(kMs);
    path.per_tick = 0;
    path.run(20 * kMs);
  }
  ASSERT_TRUE(path.found());
}

TEST(SizeSearch, LossThatTakesAllSizesDecidesNothing) {
  Path path(8192);
  path.loss = 0.9;
  path.run(30 * kSecond);
  EXPECT_FALSE(path.found());
  EXPECT_GT(path.asked, 0U);
  EXPECT_LT(path.asked, 8 * 13 * SizeSearch::kEach) << "ever more rarely";
}

TEST(SizeSearch, APathThatCarriesNothingForAWhileDecidesNothing) {
  Path path(8192);
  path.carries = 0;
  path.run(10 * kSecond);
  EXPECT_FALSE(path.found());
  path.carries = 9000;
  path.run(30 * kSecond);
  EXPECT_FALSE(path.found());
}

// A start that overshot, on a path of 12 Mbit/s: whichever probes it takes, the path carries what it carried.
TEST(SizeSearch, AQueueThatIsFullForAWhileDecidesNothing) {
  for (uint64_t full_ns = 100 * kMs; full_ns < 700 * kMs; full_ns += 5 * kMs) {
    Path path(1400);
    path.full_until_ns = full_ns;
    path.padded_bytes_per_tick = 1500;
    path.run(10'000 * kMs);
    EXPECT_FALSE(path.found()) << "full for " << full_ns / kMs << " ms";
  }
}

TEST(SizeSearch, APeerThatCountsNoPaddingOrIsSilentDecidesNothing) {
  Path path(8192);
  path.carries = 1500;
  path.knows_padding = false;
  path.run(30 * kSecond);
  EXPECT_FALSE(path.found());
  Path silent(8192);
  silent.carries = 1500;
  silent.answers = false;
  silent.run(30 * kSecond);
  EXPECT_FALSE(silent.found());
  EXPECT_EQ(silent.asked, 0U);
}

TEST(SizeSearch, WhatEveryPathCarriesIsNotSearched) {
  Path path(1180);
  path.carries = 1000;
  path.run(10 * kSecond);
  EXPECT_EQ(path.asked, 0U);
}

TEST(PathSizes, AreRememberedByPeerAndFamilyForAWhile) {
  PathSizes sizes;
  EXPECT_EQ(sizes.chunk_bytes("beta", true, 5), 0U);
  sizes.set("beta", true, 1400, 5);
  EXPECT_EQ(sizes.chunk_bytes("beta", true, 5), 1400U);
  EXPECT_EQ(sizes.chunk_bytes("beta", false, 5), 0U);
  EXPECT_EQ(sizes.chunk_bytes("gamma", true, 5), 0U);
  sizes.set("beta", true, 1188, 6);
  EXPECT_EQ(sizes.chunk_bytes("beta", true, PathSizes::kKeptNs), 1188U);
  EXPECT_EQ(sizes.chunk_bytes("beta", true, PathSizes::kKeptNs + 6), 0U) << "a longer one is tried again";
}

}  // namespace
}  // namespace sluice::rate
