// The life of memif links: connect, notice that a peer went, connect again, while workers run.
//
// One thread for all links of the process, since they share the one thread on which drivers handle events
// (driver.h); it is the only one that starts and stops the devices. Invariant: the driver's handlers run, and
// a device stops or starts, only while every worker stands at a closed gate, of whichever link. The client of
// DPDK 22.11's driver connects only when started, so it is stopped and started again; its server reconnects
// by itself.
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

#include "dataplane/base/error.h"
#include "dataplane/base/unique_fd.h"
#include "dataplane/memif/driver.h"
#include "dataplane/memif/gate.h"
#include "dataplane/memif/rings.h"
#include "dataplane/memif/socket.h"

namespace sluice::memif {

// One device of this process, set up and not started; its gates are offline.
struct LinkEnd {
  SocketConfig socket;
  std::unique_ptr<Driver> driver;
  std::vector<Gate*> gates;  // one per queue pair
  // Called at closed gates before they open: the region of the new connection, or nullptr when it cannot be
  // told apart. Only of use where the process has one link.
  std::function<void(const Region*)> attach;
};

class Link {
 public:
  // `handlers` outlives the process's links, which share it.
  Link(std::vector<LinkEnd> ends, HandlerThread& handlers);
  ~Link();  // workers have ended; leaves the devices stopped and the handlers' thread held

  Status start();
  bool up(size_t end) const { return ends_[end]->up.load(std::memory_order_relaxed); }
  // Sentences for the log since the last call.
  std::vector<std::string> take_news();

 private:
  using Clock = std::chrono::steady_clock;
  struct End : LinkEnd {
    explicit End(LinkEnd end) : LinkEnd(std::move(end)) {}
    UniqueFd greeting;  // client: a connection that asks whether the server lives
    bool online = false;
    bool mismatch_said = false;
    uint64_t region = 0;  // inode of what was attached; 0: the driver does the work
    Clock::time_point next_try;
    std::atomic<bool> up{false};

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
  HandlerThread& handlers_;
  bool held_ = false;  // the handlers' thread; always while a link is online and the gates are open
  UniqueFd stop_event_;
  std::atomic<bool> stopping_{false};
  std::mutex news_mutex_;
  std::vector<std::string> news_;
  std::thread thread_;
};

}  // namespace sluice::memif
