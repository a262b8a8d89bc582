// Holds DPDK's interrupt thread, so that drivers' handlers run only when we let them.
//
// memif's driver unmaps its rings on that thread the moment its peer goes away, without regard to a
// worker inside a burst: that is a crash. So the thread is held while the link is up, and let go only
// with the workers at a closed gate (memif_link.h). DPDK offers no such thing; but alarms run
// on that thread too, and ours returns when it is told to.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace sluice::dpdk {

class Interrupts {
 public:
  // One per process, never destroyed: the interrupt thread may still be held when the process ends.
  static Interrupts& instance();

  // Returns when the interrupt thread stands in our alarm; every event handled before is done with.
  void hold(uint64_t delay_us = 1);
  void let_go();
  // While held: gives the thread time to handle what is ready, and holds it again. What it did not get to
  // is still ready afterwards.
  void handle_ready();

 private:
  Interrupts() = default;
  static void on_alarm(void* self);

  std::mutex mutex_;
  std::condition_variable changed_;
  bool wanted_ = false;
  bool held_ = false;
};

}  // namespace sluice::dpdk
