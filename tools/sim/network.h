// The wire between a destination and its sources.
//
// Pure. Each direction is a path of tools/wire: the very models of the emulator.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "control/recovery/extent_map.h"
#include "tools/sim/forger.h"
#include "tools/sim/nat.h"
#include "tools/sim/oracle.h"
#include "tools/sim/plan.h"
#include "tools/sim/scheduler.h"
#include "tools/sim/trace.h"
#include "tools/wire/delay_line.h"
#include "tools/wire/path.h"

namespace sluice::sim {

class Wire {
 public:
  using Arrive = std::function<void(uint32_t node, std::span<const uint8_t> frame)>;
  Wire(const Plan& plan, Scheduler& scheduler, Trace& trace, Arrive arrive);

  void send(uint32_t node, std::span<const uint8_t> frame);
  void heal();
  // From now on the source's IP datagrams of more bytes are lost; 0: none is for its size.
  void narrow(uint32_t carries_bytes) { carries_bytes_ = carries_bytes; }
  void slow_down(uint32_t node);  // what it sends: to a tenth of its rate
  void blackhole(uint32_t node, uint64_t until_ns);
  uint64_t faults() const;
  uint64_t frames() const;

 private:
  struct Direction final : emulator::Path::Out {
    Direction(const Plan& plan, uint32_t sender, uint32_t receiver, uint64_t seed)
        : from(sender),
          to(receiver),
          path(path_between(plan, sender, receiver), seed),
          line(64U << 20),
          forger(plan, sender) {}
    void deliver(std::span<const uint8_t> bytes, uint64_t deliver_ns) override {
      line.add(bytes, deliver_ns);
    }
    const uint32_t from;
    const uint32_t to;
    emulator::Path path;
    emulator::DelayLine line;
    Forger forger;
    uint64_t woken_ns = UINT64_MAX;  // the next run
    uint64_t udp_frames = 0;
    uint64_t picked = 0;    // lost by the plan's bits
    uint64_t too_long = 0;  // for a link in the middle
  };
  static emulator::Settings path_between(const Plan& plan, uint32_t sender, uint32_t receiver);
  std::span<uint8_t> translate(std::span<const uint8_t> frame);
  void send(Direction& d, std::span<const uint8_t> frame);
  void plan_run(Direction& d);
  void run(Direction& d);

  const Plan& plan_;
  Scheduler& scheduler_;
  Trace& trace_;
  Arrive arrive_;
  std::vector<std::unique_ptr<Direction>> directions_;  // between kSource and kDestination, both ways, first
  Nat nat_;
  std::vector<uint8_t> translated_;  // a frame that passes it
  bool healed_ = false;
  uint32_t carries_bytes_ = 0;
};

}  // namespace sluice::sim
