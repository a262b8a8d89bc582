// SPDX-License-Identifier: Apache-2.0
#include "dataplane/coding/parity_choice.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace sluice::coding {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kGbps = 1'000'000'000;
constexpr uint64_t kMb = 1'000'000;
constexpr CodesAtHand kBoth{.reed_solomon = true, .raptorq = true};

PathState path(uint64_t rtt_ns, double loss, uint64_t rate_bps = kGbps) {
  return {.rate_bps = rate_bps, .rtt_ns = rtt_ns, .loss = loss};
}

WorkState work(uint64_t memory_bytes = 1000 * kMb) {
  return {.memory_bytes = memory_bytes, .chunk_bytes = 8192, .extent_bytes = 1U << 20};
}

// Of so many bytes, with so many repair symbols for each block of 64 chunks.
EndState end_of(uint64_t bytes, uint32_t repair_symbols) {
  const uint64_t chunks = (bytes + 8191) / 8192;
  return {.open_chunks = chunks, .parity_chunks = (chunks * repair_symbols + 63) / 64, .wire_bytes = 8322};
}

TEST(ParityChoice, SendsNothingAheadWhereNothingIsLost) {
  for (const uint64_t rtt_ns : {1 * kMs, 100 * kMs, 600 * kMs}) {
    EXPECT_EQ(choose_parity(path(rtt_ns, 0), work(4 * kMb), kBoth), ParityChoice());
    EXPECT_EQ(choose_parity_at_end(path(rtt_ns, 0), work(4 * kMb), kBoth), ParityChoice());
  }
}

TEST(ParityChoice, SendsNothingAheadWhileMoreIsToBeSentAndThereIsMemory) {
  for (const double loss : {1e-5, 1e-3, 0.01, 0.1, 0.3})
    EXPECT_EQ(choose_parity(path(100 * kMs, loss), work(), kBoth).use, ParityUse::kNone) << loss;
}

TEST(ParityChoice, SendsAtTheEndAsManyAsTheLossCallsFor) {
  const ParityChoice choice = choose_parity_at_end(path(200 * kMs, 0.01), work(), kBoth);
  EXPECT_EQ(choice.use, ParityUse::kAtEnd);
  EXPECT_EQ(choice.scheme, Scheme::kReedSolomon);
  EXPECT_EQ(choice.repair_symbols, 4U);
}

TEST(ParityAtEnd, PaysWhereARepairWouldCostARoundTrip) {
  EXPECT_TRUE(pays_at_end(path(200 * kMs, 0.01), end_of(10 * kMb, 4)));
  EXPECT_TRUE(pays_at_end(path(50 * kMs, 0.01, kGbps / 10), end_of(kMb / 2, 4)));
  // Repair after repair would be lost again.
  EXPECT_TRUE(pays_at_end(path(200 * kMs, 0.3, kGbps / 10), end_of(10 * kMb, 48)));
}

TEST(ParityAtEnd, DoesNotPayWhereWaitingIsShortOrRare) {
  EXPECT_FALSE(pays_at_end(path(kMs / 2, 0.05, 100 * kGbps), end_of(kMb, 10)));
  EXPECT_FALSE(pays_at_end(path(200 * kMs, 1e-6), end_of(100'000, 1)));
  EXPECT_FALSE(pays_at_end(path(0, 0.01), end_of(kMb, 4))) << "nothing is known of the path";
  EXPECT_FALSE(pays_at_end(path(200 * kMs, 0.01, 0), end_of(kMb, 4)));
  EXPECT_FALSE(pays_at_end(path(200 * kMs, 0.01), {}));
}

// Extents of one chunk each, as of small files: a repair symbol for each sends everything twice.
TEST(ParityAtEnd, DoesNotPayWhereItTakesAsLongAsARepair) {
  EndState small{.open_chunks = 2000, .parity_chunks = 2000, .wire_bytes = 8322};
  EXPECT_FALSE(pays_at_end(path(20 * kMs, 0.01, kGbps / 10), small));
  small.parity_chunks = 100;
  EXPECT_TRUE(pays_at_end(path(200 * kMs, 0.01, kGbps / 10), small));
}

TEST(ParityChoice, SendsAheadWhereLossesKeepMoreExtentsOpenThanThereIsMemory) {
  // 10 Gbit/s and 200 ms are 250 MB on the path, and at 1 % of loss extents wait for two repairs more.
  const PathState long_path = path(200 * kMs, 0.01, 10 * kGbps);
  EXPECT_EQ(choose_parity(long_path, work(400 * kMb), kBoth).use, ParityUse::kForMemory);
  EXPECT_EQ(choose_parity(long_path, work(2000 * kMb), kBoth).use, ParityUse::kNone);
}

// Repetition would send every chunk several times until memory is free.
TEST(ParityChoice, SendsAheadWhereAFifthIsLostAndMemoryIsShort) {
  const ParityChoice choice = choose_parity(path(200 * kMs, 0.3), work(50 * kMb), kBoth);
  EXPECT_EQ(choice.use, ParityUse::kForLoss);
  // 0.3 / 0.7 of 64 symbols replace those that are lost; a standard deviation more, not three.
  EXPECT_GE(choice.repair_symbols, 28U);
  EXPECT_LT(choice.repair_symbols, 40U);
}

// Repair symbols cost less there than the copies of what was lost again.
TEST(ParityChoice, SendsAheadWhereHalfIsLostWhateverMemoryThereIs) {
  const WorkState small_chunks{.memory_bytes = 1000 * kMb, .chunk_bytes = 640, .extent_bytes = 1U << 20};
  EXPECT_EQ(choose_parity(path(250 * kMs, 0.5, 2 * kGbps), small_chunks, kBoth).use, ParityUse::kForLoss);
  EXPECT_EQ(choose_parity(path(250 * kMs, 0.1, 2 * kGbps), small_chunks, kBoth).use, ParityUse::kNone);
}

TEST(ParityChoice, TakesRaptorQWhereMuchIsLostAndTheRateIsWithinItsReach) {
  const auto scheme = [](double loss, uint64_t rate_bps, CodesAtHand codes) {
    return choose_parity_at_end(path(200 * kMs, loss, rate_bps), work(), codes).scheme;
  };
  EXPECT_EQ(scheme(0.1, kGbps, kBoth), Scheme::kRaptorQ);
  EXPECT_EQ(scheme(0.01, kGbps, kBoth), Scheme::kReedSolomon);
  EXPECT_EQ(scheme(0.1, 10 * kGbps, kBoth), Scheme::kReedSolomon);
  EXPECT_EQ(scheme(0.1, kGbps, {.reed_solomon = true}), Scheme::kReedSolomon);
  EXPECT_EQ(scheme(0.01, 10 * kGbps, {.raptorq = true}), Scheme::kRaptorQ);
}

TEST(ParityChoice, ChoosesNothingWithoutACodeOrAnEstimate) {
  for (const auto choose : {choose_parity, choose_parity_at_end}) {
    EXPECT_EQ(choose(path(200 * kMs, 0.1), work(4 * kMb), {}), ParityChoice());
    EXPECT_EQ(choose(path(0, 0.1), work(4 * kMb), kBoth), ParityChoice());
    EXPECT_EQ(choose(path(200 * kMs, 0.1, 0), work(4 * kMb), kBoth), ParityChoice());
    EXPECT_EQ(choose(path(200 * kMs, 0.1), {}, kBoth), ParityChoice());
  }
}

TEST(ParityChoice, IsAlwaysOneThatItsCodeCanMake) {
  for (const double loss : {1e-4, 0.01, 0.2, 0.5, 0.9, 1.0, 7.0}) {
    for (const double run : {0.0, 1.0, 50.0, 1e6}) {
      for (const uint32_t chunk_bytes : {256U, 1400U, 8192U, 32768U}) {
        for (const CodesAtHand codes :
             {kBoth, CodesAtHand{.reed_solomon = true}, CodesAtHand{.raptorq = true}}) {
          const PathState lossy{.rate_bps = kGbps, .rtt_ns = 300 * kMs, .loss = loss, .loss_run_mean = run};
          const WorkState some{.memory_bytes = kMb, .chunk_bytes = chunk_bytes, .extent_bytes = 1U << 20};
          for (const auto choose : {choose_parity, choose_parity_at_end}) {
            const ParityChoice choice = choose(lossy, some, codes);
            const uint32_t most = choice.scheme == Scheme::kRaptorQ ? 768 : 254;
            EXPECT_LE(choice.repair_symbols, most);
            EXPECT_EQ(choice.use == ParityUse::kNone, choice.repair_symbols == 0);
          }
        }
      }
    }
  }
}

// ---- how many ----------------------------------------------------------------------------------

TEST(RepairSymbols, AreTheMeanOfTheLossesAndThreeDeviations) {
  for (const double loss : {0.0001, 0.001, 0.005, 0.01, 0.02}) {
    const auto expected = static_cast<uint32_t>(std::ceil(64 * loss + 3 * std::sqrt(64 * loss)));
    EXPECT_EQ(repair_symbols_for({.source_symbols = 64, .loss = loss}, 3, 191), expected) << loss;
  }
  EXPECT_EQ(repair_symbols_for({.source_symbols = 64, .loss = 0}, 3, 191), 0U);
  EXPECT_EQ(repair_symbols_for({.source_symbols = 64, .loss = 0.9}, 3, 191), 191U);
}

TEST(RepairSymbols, AreMoreWhereLossesComeInRuns) {
  const auto for_run = [](double run) {
    return repair_symbols_for({.source_symbols = 64, .loss = 0.01, .loss_run = run}, 3, 191);
  };
  EXPECT_GT(for_run(4), for_run(1));
  EXPECT_GT(for_run(16), for_run(4));
}

// Blocks of which less than K symbols arrive are as rare as three deviations promise: drawn at random, since
// the formula is one for a normal distribution and these are binomial.
TEST(RepairSymbols, SufficeForNearlyAllBlocks) {
  std::mt19937_64 random(1);
  for (const uint32_t k : {63U, 250U}) {
    for (const double loss : {0.01, 0.05, 0.1, 0.3}) {
      const uint32_t m = repair_symbols_for({.source_symbols = k, .loss = loss}, 3, 1000);
      std::binomial_distribution<uint32_t> arrived(k + m, 1 - loss);
      constexpr int kBlocks = 20000;
      int short_of = 0;
      for (int i = 0; i < kBlocks; ++i) short_of += arrived(random) < k ? 1 : 0;
      EXPECT_LT(short_of, kBlocks * 6 / 1000) << "K " << k << ", loss " << loss << ", m " << m;
    }
  }
}

}  // namespace
}  // namespace sluice::coding
