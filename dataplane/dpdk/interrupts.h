// Holds DPDK's interrupt thread, so that drivers' handlers run only when we let them.
//
// memif's driver unmaps its rings on that thread the moment its peer goes away, without regard to a
// worker inside a burst: that is a crash. So the thread is held while the link is up, and let go only
// with the workers at a closed gate (dataplane/memif/link.h). DPDK has no call for that; but alarms run
// on that thread too, and ours returns only when it is told to.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "dataplane/memif/driver.h"

namespace sluice::dpdk {

class Interrupts final : public memif::HandlerThread {
 public:
  // One per process, never destroyed: the interrupt thread may still be held when the process ends.
  static Interrupts& instance();

  void hold() override { hold_after(1); }
  void let_go() override;
  void handle_ready() override;

 private:
  Interrupts() = default;
  void hold_after(uint64_t delay_us);  // returns when the thread stands in our alarm
  static void on_alarm(void* self);

  std::mutex mutex_;
  std::condition_variable changed_;
  bool wanted_ = false;
  bool held_ = false;
};

}  // namespace sluice::dpdk
