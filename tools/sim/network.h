// The wire between the two nodes, and the control connection beside it.
//
// Pure. Each direction of the wire is a path of tools/wire: the very models of the emulator. The stream is
// ordered and reliable while it lives; cut, it loses what is on its way, and its ends learn of it later.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "control/recovery/extent_map.h"
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
  void blackhole(uint32_t node, uint64_t until_ns);
  uint64_t faults() const;
  uint64_t frames() const { return directions_[0]->path.counters().in + directions_[1]->path.counters().in; }

 private:
  struct Direction final : emulator::Path::Out {
    Direction(const emulator::Settings& settings, uint64_t seed) : path(settings, seed), line(64U << 20) {}
    void deliver(std::span<const uint8_t> bytes, uint64_t deliver_ns) override {
      line.add(bytes, deliver_ns);
    }
    emulator::Path path;
    emulator::DelayLine line;
    uint64_t woken_ns = UINT64_MAX;  // the next run
    uint64_t udp_frames = 0;
    uint64_t picked = 0;  // lost by the plan's bits
  };
  void plan_run(uint32_t node);
  void run(uint32_t node);

  const Plan& plan_;
  Scheduler& scheduler_;
  Trace& trace_;
  Arrive arrive_;
  std::array<std::unique_ptr<Direction>, 2> directions_;
  bool healed_ = false;
};

enum class Kind : uint8_t {
  kHello,  // source: flows that it still has
  kReady,  // destination: flows, the same ones or new
  kHeld,   // destination: it has these bytes
  kHeldEnd,
  kPartitionSent,
  kNeed,
  kPartitionDone,  // durable
  kFileDigest,
  kFileDone,
  kSessionDone,
  kFailure,
};
const char* kind_name(Kind kind);

struct Message {
  Kind kind{};
  uint32_t object = 0;
  uint32_t lane = 0;
  bool same = false;  // kReady: the flows go on
  uint64_t digest = 0;
  uint64_t size = 0;
  std::vector<recovery::Range> ranges;
  std::vector<uint64_t> flow_ids;
  End end = End::kNone;
};

class Stream {
 public:
  struct Ends {
    std::function<bool(uint32_t node)> alive;
    std::function<void(uint32_t node)> connected;
    std::function<void(uint32_t node)> lost;
    std::function<void(uint32_t node, const Message&)> message;
  };
  Stream(const Plan& plan, Scheduler& scheduler, Trace& trace, Ends ends);

  // The source calls. Later: connected() at both ends, or lost() at the source.
  void connect();
  void send(uint32_t node, Message message);
  void cut();                 // both ends learn of it after a while
  void close(uint32_t node);  // this end is gone: the other learns of it
  void heal() { jitter_ns_ = 0; }
  uint64_t cuts() const { return cuts_; }

 private:
  uint64_t latency_ns();

  const Plan& plan_;
  Scheduler& scheduler_;
  Trace& trace_;
  Ends ends_;
  Random random_;
  uint64_t jitter_ns_;
  uint64_t life_ = 0;  // of the connection
  bool up_ = false;
  std::array<uint64_t, 2> arrives_ns_{};  // the last message of each side
  uint64_t cuts_ = 0;
};

}  // namespace sluice::sim
