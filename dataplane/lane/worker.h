// One pinned worker: its loop, the commands it takes from control, and what each received frame is.
//
// Owns its datagram queue, a disk ring and its extents; shares nothing with other workers but the object
// table and the steering rings (datagrams of a UDP port that another worker owns).
// The loop makes no allocation, lock or blocking call while frames flow; opening a flow allocates.
// When nothing is to do it sleeps, briefly and ever longer, unless the node polls busy.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/board/spsc_ring.h"
#include "dataplane/core/idle_sleep.h"
#include "dataplane/core/store_choice.h"
#include "dataplane/core/wake_delay.h"
#include "dataplane/lane/clock.h"
#include "dataplane/lane/coder.h"
#include "dataplane/lane/key_table.h"
#include "dataplane/lane/rx_side.h"
#include "dataplane/lane/tx_side.h"
#include "dataplane/net/port.h"

namespace sluice::lane {

// Datagrams on their way from the worker whose queue got them to the one that owns their UDP port.
inline constexpr uint32_t kSteeringRingSlots = 256;
using SteeringRing = board::SpscRing<net::RxDatagram, kSteeringRingSlots>;

struct WorkerShared {
  net::Port& port;
  board::Board& board;
  ObjectTable& objects;
  KeyTable& keys;
  bool with_tsc = false;                                 // workers tell time by it
  bool poll_busy = false;                                // never sleep
  uint32_t key_epoch_bits = seal::KeyChain::kEpochBits;  // tests and the simulator take fewer
  std::atomic<bool>& stop;
  const std::vector<std::unique_ptr<std::atomic<uint64_t>>>& epochs;  // each worker's quiet points
  std::vector<std::unique_ptr<storage::Disk>> disks;                  // one per worker
  std::vector<int> helper_cpus;                                       // for io_uring's own threads
  std::vector<std::unique_ptr<SteeringRing>> steering;                // [from * workers + to]
  std::function<void(const std::string&)> warn;                       // any thread; cold
};

class Worker {
 public:
  Worker(WorkerShared& shared, uint32_t index);
  // Once, before the others, on the worker's own thread.
  Status open();
  // Until shared.stop.
  void run();
  // One turn of run, for tests with a clock of their own; true when anything was done.
  bool step(uint64_t now_ns);
  uint32_t disk_operations() const { return disk_.in_flight(); }
  // When something is next due by itself: pacing, probes, statuses.
  uint64_t next_due_ns(uint64_t now_ns) const { return std::min(tx_.next_due_ns(now_ns), rx_.next_due_ns()); }

 private:
  bool poll_commands(uint64_t now_ns);
  void obey(const board::Command& command, uint64_t now_ns);
  int open_flow(const board::Command& command, uint64_t now_ns);
  bool poll_datagrams(uint64_t now_ns);
  bool poll_steered(uint64_t now_ns);
  bool hand_over(net::RxDatagram* datagram);
  void on_datagram(const net::RxDatagram& datagram, uint64_t now_ns);
  bool poll_disk();
  void count_disk_time(uint64_t now_ns);
  uint64_t moved() const;
  uint64_t counted(Counter counter) const {
    return resources_.slot.counters[static_cast<uint32_t>(counter)].load(std::memory_order_relaxed);
  }
  uint64_t idle(uint64_t stepped_ns, uint64_t now_ns);  // returns the time afterwards

  WorkerShared& shared_;
  uint32_t index_;
  uint32_t workers_;  // copied: control can write to the board
  const std::unique_ptr<net::DatagramQueue> datagrams_;
  storage::Disk& disk_;
  const std::unique_ptr<seal::Scratch> scratch_;
  const std::unique_ptr<Coder> coder_;
  WorkerResources resources_;
  uint32_t tx_extents_;
  TxSide tx_;
  RxSide rx_;
  std::array<net::RxDatagram, net::kBurst> burst_;  // a member, so that no turn has to initialise it
  uint32_t idle_loops_ = 0;
  IdleSleep idle_sleep_;
  Clock clock_;
  uint64_t disk_counted_ns_ = 0;  // what its operations took is counted until then
  WakeDelay wake_delay_;
  StoreChoice store_choice_;
};

}  // namespace sluice::lane
