// The life of memif links: connect, notice that a peer went, connect again, while workers run.
//
// One thread for all links of the process, since they share DPDK's one interrupt thread; it is the only one
// that starts and stops the devices. Invariant: the driver's interrupt handlers run, and a device stops or
// starts, only while every worker stands at a closed gate, of whichever link. DPDK 22.11's client connects
// only when started, so it is stopped and started again; its server reconnects by itself.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "dataplane/base/unique_fd.h"
#include "dataplane/dpdk/device_args.h"
#include "dataplane/dpdk/gate.h"
#include "dataplane/dpdk/interrupts.h"
#include "dataplane/dpdk/memif_rings.h"

namespace sluice::dpdk {

// One device of this process, set up and not started; its gates are offline.
struct MemifEnd {
  Device device;
  uint16_t port_id = 0;
  std::vector<Gate*> gates;
  // Called at closed gates before they open: the region of the new connection, or nullptr when it cannot be
  // told apart. Only of use where the process has one link.
  std::function<void(const MemifRegion*)> attach;
};

class MemifLink {
 public:
  explicit MemifLink(std::vector<MemifEnd> ends);
  ~MemifLink();  // workers have ended; leaves the devices stopped and the interrupt thread held

  Status start();
  bool up(size_t end) const { return ends_[end]->up.load(std::memory_order_relaxed); }
  // Sentences for the log since the last call.
  std::vector<std::string> take_news();

 private:
  using Clock = std::chrono::steady_clock;
  struct End : MemifEnd {
    explicit End(MemifEnd end) : MemifEnd(std::move(end)) {}
    UniqueFd greeting;  // client: a connection that asks whether the server lives
    bool online = false;
    bool mismatch_said = false;
    uint64_t region = 0;  // inode of what was attached; 0: the driver does the work
    Clock::time_point next_try;
    std::atomic<bool> up{false};

    bool device_up() const;
    bool still_attached() const;
    void close_gates(Gate::State state) const;
    void open_gates() const;
  };
  enum class Knock : uint8_t { kNone, kOnline, kOffline };

  void run();
  Knock wait_for_knock();
  int wait_ms() const;
  void seek(End& end);
  bool server_answers(End& end);
  void start_client(End& end);
  void let_handlers_run(Knock knock);
  void try_online(End& end);
  void settle();
  bool any_online() const;
  void pause_gates();
  void hold();
  void let_go();
  bool sleep_ms(int timeout_ms);  // true: stopping
  void say(std::string news);

  std::vector<std::unique_ptr<End>> ends_;
  Interrupts& interrupts_ = Interrupts::instance();
  bool held_ = false;  // the interrupt thread; always while a link is online and the gates are open
  UniqueFd stop_event_;
  std::atomic<bool> stopping_{false};
  std::mutex news_mutex_;
  std::vector<std::string> news_;
  std::thread thread_;
};

}  // namespace sluice::dpdk
