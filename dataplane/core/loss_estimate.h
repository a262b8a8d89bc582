// What share of the datagrams of a path is lost, for whoever must decide early in a transfer.
//
// Pure; one owner. A short file is over before much is known of its path. So the estimate begins with what a
// path may lose of which nothing is known yet, and follows what was counted as soon as that says more: the
// mean of a beta distribution, as for any share that is counted.
//
// A start that overshoots loses much, for a moment, by its own doing. What is sent ahead for that loss comes
// too late for it. So the estimate tells apart what was lost lately.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice {

class LossEstimate {
 public:
  // Before anything was counted: a quarter of a datagram in fifty.
  static constexpr double kLostBefore = 0.25;
  static constexpr double kSentBefore = 50;
  // What was counted longer ago than so many transmissions counts half, since paths change.
  static constexpr double kRemembered = 8192;
  static constexpr double kRememberedLately = 256;

  // Of the transmissions that the peer knows of: how many there were, and how many of them were lost; in all.
  void update(uint64_t sent, uint64_t lost) {
    if (sent <= sent_) return;
    const double more_sent = static_cast<double>(sent - sent_);
    const double more_lost = static_cast<double>(lost - std::min(lost, lost_));
    all_.add(more_sent, more_lost, kRemembered);
    lately_.add(more_sent, more_lost, kRememberedLately);
    sent_ = sent;
    lost_ = std::max(lost, lost_);
  }
  // Of what was counted; 0: nothing was lost.
  double counted() const { return all_.sent == 0 ? 0 : std::min(kMost, all_.lost / all_.sent); }
  // Never 0.
  double expected() const { return all_.expected(); }
  // The same for what is sent next: where less than two thirds of it was lost lately, some of that loss is
  // over. Chance alone rarely makes so much of the last few hundred.
  double expected_now() const {
    const double lately = lately_.expected();
    return lately < kOver * all_.expected() ? lately : all_.expected();
  }

 private:
  static constexpr double kMost = 0.95;
  static constexpr double kOver = 2.0 / 3;
  struct Counted {
    double sent = 0;
    double lost = 0;  // of these
    void add(double more_sent, double more_lost, double remembered) {
      sent += more_sent;
      lost += more_lost;
      if (sent <= remembered) return;
      sent /= 2;
      lost /= 2;
    }
    double expected() const { return std::min(kMost, (lost + kLostBefore) / (sent + kSentBefore)); }
  };
  uint64_t sent_ = 0;
  uint64_t lost_ = 0;
  Counted all_;
  Counted lately_;
};

}  // namespace sluice
