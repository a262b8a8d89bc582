// SeqWindow and SentRing: what each tx_seq means at both ends.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

#include "dataplane/core/sent_ring.h"
#include "dataplane/core/seq_window.h"

namespace sluice {
namespace {

using Novelty = SeqWindow::Novelty;

TEST(SeqWindow, AcceptsEachNumberOnceInAnyOrder) {
  constexpr uint32_t kBits = 1024;
  std::vector<std::atomic<uint64_t>> words(kBits / 64);
  SeqWindow window(words.data(), kBits);
  std::set<uint64_t> seen;
  std::mt19937_64 random(3);
  uint64_t highest = 0;
  for (int i = 0; i < 200'000; ++i) {
    // Mostly forward, with reordering, repetition and now and then a jump beyond the window.
    uint64_t seq = highest + random() % 4;
    if (random() % 4 == 0) seq = highest - std::min<uint64_t>(highest, random() % 600);
    if (random() % 5000 == 0) seq = highest + random() % 5000;
    const Novelty novelty = window.check(seq);
    if (highest > 0 && highest - std::min(seq, highest) >= window.history()) {
      ASSERT_EQ(novelty, Novelty::kTooOld);
      continue;
    }
    ASSERT_EQ(novelty, seen.contains(seq) ? Novelty::kSeen : Novelty::kNew) << seq << " at " << highest;
    if (novelty == Novelty::kNew) {
      window.mark(seq);
      seen.insert(seq);
    }
    highest = std::max(highest, seq);
  }
}

TEST(SeqWindow, ReaderFindsEveryGapOfTheHistory) {
  constexpr uint32_t kBits = 512;
  std::vector<std::atomic<uint64_t>> words(kBits / 64);
  SeqWindow window(words.data(), kBits);
  for (uint64_t seq = 0; seq < 100'000; ++seq) {
    if (seq % 7 != 3) window.mark(seq);
    const uint64_t end = window.end();
    if (seq % 97 != 0) continue;
    for (uint64_t s = end - std::min<uint64_t>(end, window.history()); s < end; ++s) {
      const bool bit = (words[(s % kBits) / 64].load() >> (s % 64)) & 1;
      ASSERT_EQ(bit, s % 7 != 3) << s << " of " << end;
    }
  }
}

TEST(SeqWindow, RefusesNumbersThatNoFlowReaches) {
  std::vector<std::atomic<uint64_t>> words(16);
  SeqWindow window(words.data(), 1024);
  window.mark(5);
  for (const uint64_t seq : {SeqWindow::kSeqEnd, UINT64_MAX - 1, UINT64_MAX}) {
    EXPECT_EQ(window.check(seq), Novelty::kTooOld) << seq;
  }
  EXPECT_EQ(window.check(SeqWindow::kSeqEnd - 1), Novelty::kNew);
}

// Each at an offset of its own number.
void put(SentRing& ring, uint64_t first, uint64_t end) {
  for (uint64_t seq = first; seq < end; ++seq)
    ring.put(seq, {.offset = seq, .object = 1, .length = 100, .tries = 2});
}

TEST(SentRing, GivesEachTransmissionOnce) {
  SentRing ring(8);
  EXPECT_EQ(ring.take(0).length, 0U);
  put(ring, 0, 6);
  EXPECT_EQ(ring.take(5).offset, 5U);
  EXPECT_EQ(ring.take(5).length, 0U);
  EXPECT_EQ(ring.take(6).length, 0U) << "never sent";
  EXPECT_EQ(ring.take(5 + ring.capacity()).length, 0U) << "never sent";
  EXPECT_EQ(ring.take(UINT64_MAX).length, 0U) << "never sent";
}

TEST(SentRing, ForgetsWhatWasOverwritten) {
  SentRing ring(8);
  put(ring, 0, 2 + ring.capacity());
  EXPECT_EQ(ring.take(1).length, 0U);
  EXPECT_EQ(ring.take(1 + ring.capacity()).offset, 1U + ring.capacity());
}

TEST(SentRing, CopiesAreLostTogether) {
  SentRing ring(64);
  put(ring, 0, 9);
  for (const uint64_t seq : {5, 6, 8}) {  // 7 carried something else
    if (seq != 5) ring.copies(seq, 5);
  }
  EXPECT_EQ(ring.take(5).length, 0U);
  EXPECT_EQ(ring.take(8).length, 0U);
  EXPECT_EQ(ring.take(8).length, 0U) << "reported twice";
  const SentChunk chunk = ring.take(6);
  EXPECT_EQ(chunk.length, 100U);
  EXPECT_EQ(chunk.tries, 2U);
  EXPECT_EQ(ring.take(7).offset, 7U);
}

TEST(SentRing, ACopyStandsAloneWhenTheFirstIsForgotten) {
  SentRing ring(8);
  put(ring, 0, 9);
  ring.copies(8, 7);
  put(ring, 9, 8 + ring.capacity());  // the place of 7 carries another
  EXPECT_EQ(ring.take(8).offset, 8U);
  const uint64_t next = 8 + ring.capacity();
  put(ring, next, next + 1);
  ring.copies(next, 7);
  EXPECT_EQ(ring.take(next).offset, next);
  EXPECT_EQ(ring.take(7 + ring.capacity()).offset, 7U + ring.capacity());
}

}  // namespace
}  // namespace sluice
