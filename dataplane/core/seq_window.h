// The received tx_seq of one flow: a sliding bitmap, written by the owning worker, read by control.
//
// Pure but for std::atomic, since the words lie on the board. A number is accepted once (replay and
// duplicate protection, RFC 4303 3.4.3 in spirit). Half of the bits are history, the other half is
// room ahead: words ahead of the highest number are cleared before the highest is published, so a
// reader that looks no further back than kHistory never sees a stale bit.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "dataplane/base/check.h"

namespace sluice {

class SeqWindow {
 public:
  enum class Novelty : uint8_t { kNew, kSeen, kTooOld };
  // No flow lives to send so many: a number from here on would leave no room for what follows it.
  static constexpr uint64_t kSeqEnd = 1ULL << 62;

  SeqWindow() = default;
  // `words` has bits/64 elements; bits is a power of two.
  SeqWindow(std::atomic<uint64_t>* words, uint32_t bits) : words_(words), mask_(bits - 1) {
    for (uint32_t i = 0; i < bits / 64; ++i) words_[i].store(0, std::memory_order_relaxed);
  }

  Novelty check(uint64_t seq) const {
    if (seq >= end_) return seq < kSeqEnd ? Novelty::kNew : Novelty::kTooOld;
    if (end_ - seq > history()) return Novelty::kTooOld;
    return (word(seq).load(std::memory_order_relaxed) >> (seq & 63)) & 1 ? Novelty::kSeen : Novelty::kNew;
  }
  // Records a number for which check() said kNew.
  void mark(uint64_t seq) {
    // The words are on the board, where control can write: only what this object knows itself is checked.
    DCHECK(seq < kSeqEnd && (seq >= end_ || end_ - seq <= history()),
           "only a number within the window is recorded");
    if (seq >= end_) {
      clear_ahead(seq);
      end_ = seq + 1;
    }
    auto& w = word(seq);
    w.store(w.load(std::memory_order_relaxed) | (1ULL << (seq & 63)), std::memory_order_release);
  }
  // Goes on at `seq`, with nothing received: what moved the window here was false.
  void restart(uint64_t seq) {
    const uint64_t words = (mask_ + 1) / 64;
    for (uint64_t w = 0; w < words; ++w) words_[w].store(0, std::memory_order_relaxed);
    end_ = seq;
    cleared_words_ = ((seq - (seq < history() ? seq : history())) >> 6) + words;
  }
  uint64_t end() const { return end_; }  // 1 + highest marked, 0: none
  uint32_t history() const { return (mask_ + 1) / 2; }

 private:
  std::atomic<uint64_t>& word(uint64_t seq) const { return words_[(seq & mask_) >> 6]; }

  // Keeps the invariant: every word from the one after end_-1's up to seq's + history is clear.
  // Each word is cleared once, when the highest number first comes within half a window of it.
  void clear_ahead(uint64_t seq) {
    // One word short of the half, so that it never is the word that holds the oldest history.
    const uint64_t last_word = (seq + history() - 64) >> 6;
    uint64_t first_word = cleared_words_;
    if (last_word < first_word) return;
    if (last_word - first_word >= (mask_ + 1) / 64) first_word = last_word - ((mask_ + 1) / 64 - 1);
    for (uint64_t w = first_word; w <= last_word; ++w) {
      words_[w & (mask_ >> 6)].store(0, std::memory_order_relaxed);
    }
    cleared_words_ = last_word + 1;
  }

  std::atomic<uint64_t>* words_ = nullptr;
  uint64_t mask_ = 0;
  uint64_t end_ = 0;
  uint64_t cleared_words_ = 0;  // words below this number (not taken modulo) were cleared
};

}  // namespace sluice
