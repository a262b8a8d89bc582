// One life of a dataplane: the production workers over a simulated device and disks, and what its main
// thread does for control (objects). Dies without a word.
//
// Virtual time: a worker's loop runs when a frame, a completion or a command has come, when something is
// due, and now and then by itself.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "dataplane/base/number.h"
#include "dataplane/lane/worker.h"
#include "tools/sim/disk.h"
#include "tools/sim/port.h"

namespace sluice::sim {

// The memory of a board, used again by one life after the other (zeroed where it was used).
board::Board* board_memory(uint32_t node);

class Dataplane {
 public:
  struct Setup {
    const Plan& plan;
    uint32_t node = 0;
    uint64_t generation = 0;
    Scheduler& scheduler;
    Trace& trace;
    Oracle& oracle;
    DiskShared& disk;
    std::function<void(std::span<const uint8_t>)> send;
  };
  explicit Dataplane(Setup setup);
  ~Dataplane();
  Dataplane(const Dataplane&) = delete;
  Dataplane& operator=(const Dataplane&) = delete;
  // The process is killed: what its disks are doing happens or not.
  void kill();

  board::Board& board() { return board_; }
  uint64_t generation() const { return setup_.generation; }
  void arrive(std::span<const uint8_t> frame);
  void wake(uint32_t worker, uint64_t at_ns);
  void wake_all() {
    for (uint32_t i = 0; i < workers_.size(); ++i) wake(i, setup_.scheduler.now_ns());
  }

  // Without flows a worker sleeps for longer.
  void set_flows(bool any) { has_flows_ = any; }

  // As the attach server does it. Of a flow, before it is opened.
  void take_keys(FlowSlotId slot, const lane::FlowSecret& secret);
  // open_object: false when its number is taken. close_object: false while
  // something of it is in use; ask again.
  bool open_object(SessionSlotId session, ObjectId id, uint32_t flags, int fd, uint64_t size);
  bool object_open(SessionSlotId session, ObjectId id) const {
    return objects_->find(session.value(), id.value()) != nullptr;
  }
  bool close_object(SessionSlotId session, ObjectId id);
  bool close_session(SessionSlotId session);

  // Counters add up, memory is within its bound.
  void check() const;
  std::string counters() const;  // those that are not zero
  uint64_t loops() const { return loops_; }

 private:
  struct Run {
    std::unique_ptr<lane::Worker> worker;
    SimDisk* disk = nullptr;
    uint64_t next_ns = UINT64_MAX;
    uint64_t free_ns = 0;  // not before
    uint64_t idle_ns = 0;
  };
  struct Credit {
    uint64_t most = 0;  // that was granted
    uint64_t opened = 0;
    uint64_t listed = 0;
  };
  void run(uint32_t index);
  void step(uint32_t index);
  void check_credit();

  Setup setup_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  board::Board& board_;
  SimPort port_;
  std::unique_ptr<lane::ObjectTable> objects_;
  lane::KeyTable keys_;
  std::vector<std::unique_ptr<lane::Object>> closing_;
  std::atomic<bool> stop_{false};
  std::vector<std::unique_ptr<std::atomic<uint64_t>>> epochs_;
  std::unique_ptr<lane::WorkerShared> shared_;
  std::vector<Run> workers_;
  Random random_;
  bool has_flows_ = false;
  uint64_t loops_ = 0;
  std::map<uint64_t, Credit> credit_;  // of senders, by flow id
};

}  // namespace sluice::sim
