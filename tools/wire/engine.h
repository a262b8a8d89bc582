// The emulator at work: takes frames from one device, puts them through the path of their direction, and
// gives them to the other device when their time has come.
//
// One polling thread owns paths, delay lines and queues; anybody else reaches them through `inside`. It
// sleeps when nothing is due, for at most a fraction of a millisecond.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

#include "dataplane/net/frame_queue.h"
#include "tools/wire/delay_line.h"
#include "tools/wire/path.h"
#include "tools/wire/settings.h"

namespace sluice::emulator {

inline constexpr size_t kDirections = 2;
inline constexpr std::array<const char*, kDirections> kDirectionNames{"a_to_b", "b_to_a"};

// From one device's queue to the other's. Identity with the path's counters: path.out == sent + the drops
// here + inside.
class Direction final : private Path::Out {
 public:
  struct Counters {
    uint64_t sent = 0;
    uint64_t handed_bytes = 0;   // to the device, whatever became of them there
    uint64_t oversize = 0;       // in several pieces that could not be joined; these never entered the path
    uint64_t dropped_store = 0;  // no room to keep the frame until its time
    uint64_t dropped_too_long = 0;   // for the device that it should leave by
    uint64_t dropped_port_full = 0;  // that device took nothing for a while
    uint64_t dropped_port_down = 0;  // or has no peer
    uint64_t dropped() const {
      return dropped_store + dropped_too_long + dropped_port_full + dropped_port_down;
    }
  };
  struct Setup {
    net::FrameQueue* from = nullptr;
    net::FrameQueue* to = nullptr;
    uint32_t frame_bytes_max = 0;  // of `to`
    uint64_t store_bytes = 0;
    uint64_t seed = 0;
  };
  Direction(const Setup& setup, const Settings& settings);

  // Once around; true if there was anything to do.
  bool turn(uint64_t now_ns);
  uint64_t next_due_ns() const;

  void set(const Settings& settings);
  void blackhole_until(uint64_t until_ns) { path_.blackhole_until(until_ns); }
  const Path& path() const { return path_; }
  const Counters& counters() const { return counters_; }
  uint64_t inside() const { return line_.size() + setup_.to->tx_pending(); }
  uint64_t store_bytes_peak() const { return line_.bytes_peak(); }

 private:
  void deliver(std::span<const uint8_t> bytes, uint64_t deliver_ns) override;
  bool receive();
  bool send_due();
  bool append(std::span<const uint8_t> bytes);
  void flush();

  const Setup setup_;
  Path path_;
  DelayLine line_;
  Counters counters_;
  uint64_t now_ns_ = 0;
};

class Engine {
 public:
  Engine(const std::array<Direction::Setup, kDirections>& setups,
         const std::array<Settings, kDirections>& settings);

  // The polling thread's life; ends after `stop`.
  void run();
  void stop() { stopping_.store(true); }

  // Runs `body` between two turns and returns when it is done. From another thread; after `run` has ended,
  // on the caller's.
  void inside(const std::function<void(uint64_t now_ns)>& body);

  Direction& direction(size_t number) { return directions_[number]; }

 private:
  bool serve_visitor(uint64_t now_ns);
  void idle(uint64_t now_ns);

  std::array<Direction, kDirections> directions_;
  uint32_t idle_turns_ = 0;
  uint64_t busy_ns_ = 0;
  std::atomic<bool> stopping_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> visited_{false};
  const std::function<void(uint64_t)>* visitor_ = nullptr;
  bool running_ = true;  // or about to
};

// Everything counted in one direction, and what waits there now.
Json counters_json(const Direction& direction, uint64_t now_ns);

}  // namespace sluice::emulator
