// What one datagram says and no other confirms: leaps, lists of completed extents.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <random>
#include <vector>

#include "dataplane/base/time_for_test.h"
#include "dataplane/core/done_lists.h"
#include "dataplane/core/leap.h"
#include "dataplane/core/loss_level.h"
#include "dataplane/core/seq_window.h"
#include "dataplane/core/status_loss.h"

namespace sluice {
namespace {

constexpr uint64_t kFar = 1ULL << 40;

TEST(Leap, BelievesOneDatagramOnlyNearby) {
  Leap leap;
  EXPECT_TRUE(leap.believes(0, 1, 1));
  EXPECT_TRUE(leap.believes(1000, 1000 + Leap::kLeap, 1));
  EXPECT_FALSE(leap.believes(1000, 1001 + Leap::kLeap, 1));
}

TEST(Leap, BelievesASecondDatagramThatAgrees) {
  Leap leap;
  EXPECT_FALSE(leap.believes(10, kFar, 1));
  EXPECT_TRUE(leap.believes(10, kFar + 1, 1));
  EXPECT_FALSE(leap.believes(10, 2 * kFar, 2)) << "another place";
  EXPECT_TRUE(leap.believes(10, 2 * kFar, 3)) << "a probe, repeated";
}

TEST(Leap, ACopyOfADatagramProvesNothing) {
  Leap leap;
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(leap.believes(10, kFar, 7));
}

TEST(Leap, ASecondDatagramFromBehindTheFirstAgreesToo) {
  Leap leap;
  EXPECT_FALSE(leap.believes(10, 5000, 1));
  EXPECT_TRUE(leap.believes(10, 4990, 1));
}

TEST(Leap, WhatWasSaidLongAgoAndIsPassedDoesNotCount) {
  Leap leap;
  EXPECT_FALSE(leap.believes(10, 1000, 1));
  EXPECT_FALSE(leap.believes(2000, 3000, 2)) << "the first lies behind what is known by now";
}

TEST(SeqWindow, RestartsLowerAndHoldsWhatComesThen) {
  constexpr uint32_t kBits = 1024;
  std::vector<std::atomic<uint64_t>> words(kBits / 64);
  SeqWindow window(words.data(), kBits);
  for (uint64_t seq = 0; seq < 3000; ++seq) window.mark(seq);
  window.mark(kFar);
  ASSERT_EQ(window.check(3000), SeqWindow::Novelty::kTooOld);
  window.restart(3000);
  for (uint64_t seq = 2900; seq < 9000; ++seq) {
    ASSERT_EQ(window.check(seq), SeqWindow::Novelty::kNew) << seq;
    window.mark(seq);
    ASSERT_EQ(window.check(seq), SeqWindow::Novelty::kSeen) << seq;
    ASSERT_EQ(window.check(2900 + (seq - 2900) / 2), seq - (2900 + (seq - 2900) / 2) < window.history()
                                                         ? SeqWindow::Novelty::kSeen
                                                         : SeqWindow::Novelty::kTooOld);
  }
}

// A receiver and a sender of lists, and what the sender holds.
struct Lists {
  // One status, and what the sender says then.
  void status(bool echo = true, bool lost = false) {
    wire::Status status;
    log.list(&status);
    const uint32_t runs = std::min(status.run_count, runs_max);
    log.listed(status, runs);
    status.run_count = runs;  // more did not fit
    if (!lost) take(status);
    if (echo) log.echoed(record.seen());
  }
  void take(const wire::Status& status) {
    uint32_t number = status.done_first();
    for (uint32_t i = 0; i < status.run_count; ++i) {
      for (uint32_t n = 0; n < status.runs[i].count; ++n, ++number) {
        const wire::DoneExtent extent{status.runs[i].object, status.runs[i].first + n};
        const auto answer = record.look(number, extent);
        if (answer == DoneRecord::Answer::kContradiction) {
          ++contradictions;
          return;
        }
        if (answer != DoneRecord::Answer::kNext) continue;
        if (const DoneTaken* wrong = record.contradicted(number)) std::erase(taken, wrong->extent.number);
        taken.push_back(extent.number);
        record.take(number, {extent, DoneEffect::kRetired});
      }
    }
    while (const DoneTaken* wrong = record.beyond(status.done_end)) {
      std::erase(taken, wrong->extent.number);
      ++contradictions;
    }
  }
  void complete(uint64_t count) {
    for (; count > 0; --count) log.push({0, step * log.end()});
  }
  // Every one was taken, once, and nothing else.
  void expect_all() {
    std::sort(taken.begin(), taken.end());
    ASSERT_EQ(taken.size(), log.end());
    for (uint64_t i = 0; i < taken.size(); ++i) ASSERT_EQ(taken[i], step * i);
    EXPECT_EQ(record.seen(), static_cast<uint32_t>(log.end()));
  }
  wire::Status forged(uint32_t first, uint32_t count) {
    wire::Status status;
    status.done_end = first + count;
    status.done_back = count;
    status.run_count = 1;
    status.runs[0] = {.object = 0, .count = count, .first = 1'000'000};
    return status;
  }
  uint64_t step = 1;                         // extents of every second number, say, are runs of one
  uint32_t runs_max = wire::kStatusRunsMax;  // that fit into a status
  DoneLog log;
  DoneRecord record;
  std::vector<uint64_t> taken;
  int contradictions = 0;
};

TEST(DoneLists, AllAreTakenOnce) {
  Lists lists;
  for (int i = 0; i < 1000; ++i) {
    lists.complete(i % 7);
    lists.status(i % 3 == 0);
  }
  for (int i = 0; i < 100; ++i) lists.status();
  lists.expect_all();
  EXPECT_EQ(lists.contradictions, 0);
}

// More than fits into a status is said in turns, and a status that is lost holds up nothing but its own.
TEST(DoneLists, AllAreTakenThoughFewFitAndMostStatusesAreLost) {
  for (const uint64_t step : {1, 2}) {
    for (const uint32_t runs_max : {1U, 5U, wire::kStatusRunsMax}) {
      SCOPED_TRACE(testing::Message() << step << " " << runs_max);
      Lists lists;
      lists.step = step;
      std::mt19937 random(3);
      lists.runs_max = runs_max;
      for (int i = 0; i < 900; ++i) {
        lists.complete(1);
        lists.status(i % 7 == 0, random() % 3 != 0);
      }
      int statuses = 0;
      for (; lists.record.seen() != 900; ++statuses) {
        ASSERT_LT(statuses, 40'000);
        lists.status(true, random() % 3 != 0);
      }
      lists.expect_all();
      EXPECT_EQ(lists.contradictions, 0);
    }
  }
}

TEST(DoneLists, OneStatusTellsOfManyExtents) {
  Lists lists;
  lists.complete(kDoneKept);
  lists.status();
  lists.expect_all();
}

// Of any length, before or after its numbers are really used, and with the true list on its way or not.
TEST(DoneLists, AFalseListIsTakenBack) {
  for (const uint32_t count : {1U, 2U, 9U, 64U}) {
    for (const uint64_t unknown : {0, 1, 5, 40, 200}) {
      for (const bool echoed_before : {false, true}) {
        SCOPED_TRACE(testing::Message() << count << " " << unknown << " " << echoed_before);
        Lists lists;
        lists.complete(300);
        for (int i = 0; i < 20; ++i) lists.status();
        lists.complete(unknown);
        lists.take(lists.forged(lists.record.seen(), count));
        if (echoed_before) lists.log.echoed(lists.record.seen());
        for (int i = 0; i < 40; ++i) {
          lists.complete(i < 20 ? 4 : 0);
          lists.status();
        }
        lists.expect_all();
        EXPECT_GT(lists.contradictions, 0);
      }
    }
  }
}

TEST(DoneLists, AFalseListOfOldNumbersIsTakenBack) {
  Lists lists;
  lists.complete(300);
  for (int i = 0; i < 20; ++i) lists.status();
  lists.take(lists.forged(lists.record.seen() - 30, 64));
  lists.take(lists.forged(lists.record.seen(), 64));  // the forger again, as it went back
  for (int i = 0; i < 40; ++i) {
    lists.complete(4);
    lists.status();
  }
  lists.status();
  lists.expect_all();
}

// Nothing more is completed, as the sender takes its credit for used.
TEST(DoneLists, AFalseListOfWhatIsStillToComeIsTakenBack) {
  Lists lists;
  lists.complete(20);
  lists.status();
  lists.take(lists.forged(20, 64));
  lists.log.echoed(lists.record.seen());
  lists.status();
  lists.expect_all();
  EXPECT_GE(lists.contradictions, 64);
}

TEST(DoneLists, AListThatEndsTooEarlyIsTakenBack) {
  Lists lists;
  lists.complete(300);
  for (int i = 0; i < 20; ++i) lists.status();
  for (const uint32_t end : {290U, 0U, 301U, 4'000'000'000U}) {
    wire::Status early;
    early.done_end = end;
    lists.take(early);
    for (int i = 0; i < 20; ++i) lists.status();
    lists.expect_all();
  }
}

TEST(DoneLists, AFalseEchoIsTakenBack) {
  Lists lists;
  lists.complete(100);
  for (int i = 0; i < 3; ++i) lists.status();
  lists.complete(40);
  EXPECT_FALSE(lists.log.echoed(141)) << "more than there are";
  EXPECT_TRUE(lists.log.echoed(140)) << "the sender has not heard of the last 40";
  EXPECT_EQ(lists.log.unknown(), 0U);
  EXPECT_TRUE(lists.log.echoed(lists.record.seen())) << "the true one";
  lists.status();
  lists.expect_all();
  EXPECT_EQ(lists.contradictions, 0);
}

TEST(DoneLists, AnEchoOfWhatIsNotKeptIsRefused) {
  DoneLog log;
  for (uint64_t i = 0; i < 2000; ++i) log.push({0, i});
  EXPECT_EQ(log.unknown(), kDoneKept) << "what is older is gone";
  EXPECT_FALSE(log.echoed(2000 - kDoneKept - 1));
  EXPECT_TRUE(log.echoed(2000));
  EXPECT_TRUE(log.echoed(2000 - kDoneKept));
  wire::Status status;
  log.list(&status);
  EXPECT_EQ(status.done_first(), 2000 - kDoneKept);
  ASSERT_EQ(status.run_count, 1U);
  EXPECT_EQ(status.runs[0].count, kDoneKept);
  EXPECT_EQ(status.runs[0].first, 2000 - kDoneKept);
}

TEST(DoneLists, EchoedOnesAreListedOnceMore) {
  DoneLog log;
  for (uint64_t i = 0; i < 20; ++i) log.push({0, i});
  log.echoed(20);
  wire::Status status;
  log.list(&status);
  EXPECT_EQ(status.done_first(), 12U);
  EXPECT_EQ(status.done_back, kDoneAgain);
  ASSERT_EQ(status.run_count, 1U);
  EXPECT_EQ(status.runs[0].count, kDoneAgain);
}

// ---- how much is lost --------------------------------------------------------------------------

TEST(LossLevel, CountsWhatIsMissingForGoodAndNotWhatIsLate) {
  LossLevel loss;
  uint64_t now_ns = 1000 * kMs;
  uint64_t lost = 0;
  uint64_t counted = 0;
  for (uint64_t i = 1; i <= 20'000; ++i, now_ns += kMs) {
    lost += i % 2;                       // one in two milliseconds, for good
    const uint64_t late = (i % 5) * 20;  // and many that come a little later
    const uint64_t before = counted;
    counted = loss.update(lost + late, now_ns);
    ASSERT_GE(counted, before);
  }
  EXPECT_NEAR(static_cast<double>(counted), 10'000.0, 200);
}

TEST(LossLevel, AFalseLevelHidesLossForAWhileOnly) {
  LossLevel loss;
  uint64_t now_ns = 1000 * kMs;
  loss.update(100, now_ns);
  const uint64_t forged = loss.update(1'000'000, now_ns += kMs);
  for (int i = 0; i < 5000; ++i) ASSERT_EQ(loss.update(100, now_ns += kMs), forged);
  EXPECT_EQ(loss.update(150, now_ns += kMs), forged + 50);
}

// 64 statuses a window, of which the sender hears some; it echoes how many, a round trip later.
TEST(StatusLoss, StatusesGetShortAndGapsAreRepeatedWhereFewAreHeard) {
  for (const double l0 : {1e9, 20'000.0, 1024.0, 300.0}) {
    SCOPED_TRACE(l0);
    StatusLoss loss;
    std::mt19937 random(7);
    uint32_t heard = 0;
    std::deque<uint32_t> echoes(50, 0);
    for (int i = 0; i < 20'000; ++i) {
      const size_t bytes = loss.payload_bytes_max();
      loss.sent(bytes);
      const double p = 1 - std::exp(-static_cast<double>(bytes + StatusLoss::kBelowBytes) / l0);
      heard += std::uniform_real_distribution<>(0, 1)(random) >= p ? 1 : 0;
      echoes.push_back(heard);
      loss.heard(echoes.front());
      echoes.pop_front();
    }
    if (l0 > 1e8) {
      EXPECT_EQ(loss.payload_bytes_max(), wire::kStatusBytesMax);
      EXPECT_EQ(loss.gap_repeats(), 3);
    } else if (l0 > 10'000) {
      EXPECT_GT(loss.payload_bytes_max(), 900U);
    } else {
      EXPECT_LT(loss.payload_bytes_max(), 400U);
      EXPECT_GE(loss.gap_repeats(), 4);
    }
  }
}

TEST(StatusLoss, AFalseEchoIsForgotten) {
  StatusLoss loss;
  uint32_t sent = 0;
  const auto window = [&](uint32_t echo) {
    for (uint32_t i = 0; i < StatusLoss::kWindow; ++i) loss.sent(100);
    sent += StatusLoss::kWindow;
    loss.heard(echo);
  };
  for (int i = 0; i < 5; ++i) window(sent + StatusLoss::kWindow);
  EXPECT_EQ(loss.gap_repeats(), 3);
  for (const uint32_t echo : {0U, 1U, UINT32_MAX, sent + 1000}) {
    window(echo);
    for (int i = 0; i < 3; ++i) window(sent + StatusLoss::kWindow);
    EXPECT_EQ(loss.gap_repeats(), 3);
    EXPECT_EQ(loss.payload_bytes_max(), wire::kStatusBytesMax);
  }
}

}  // namespace
}  // namespace sluice
