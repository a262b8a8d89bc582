// Cold; `on_alarm` runs on DPDK's interrupt thread. See interrupts.h.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dpdk/interrupts.h"

#include <rte_alarm.h>

#include <chrono>

namespace sluice::dpdk {
namespace {

// Alarms that are due run before other events: leave time for those.
constexpr uint64_t kHandlingUs = 500;

}  // namespace

Interrupts& Interrupts::instance() {
  static auto* const only = new Interrupts;
  return *only;
}

void Interrupts::on_alarm(void* self) {
  auto& interrupts = *static_cast<Interrupts*>(self);
  std::unique_lock lock(interrupts.mutex_);
  interrupts.held_ = true;
  interrupts.changed_.notify_all();
  interrupts.changed_.wait(lock, [&] { return !interrupts.wanted_; });
  interrupts.held_ = false;
  interrupts.changed_.notify_all();
}

void Interrupts::hold_after(uint64_t delay_us) {
  std::unique_lock lock(mutex_);
  wanted_ = true;
  do {  // an alarm that finds nobody wanting it returns at once, so one too many does no harm
    rte_eal_alarm_set(delay_us, &Interrupts::on_alarm, this);
  } while (!changed_.wait_for(lock, std::chrono::milliseconds(200), [&] { return held_; }));
}

void Interrupts::let_go() {
  std::unique_lock lock(mutex_);
  wanted_ = false;
  changed_.notify_all();
  changed_.wait(lock, [&] { return !held_; });
}

void Interrupts::handle_ready() {
  let_go();
  hold_after(kHandlingUs);
}

}  // namespace sluice::dpdk
