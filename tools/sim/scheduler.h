// Virtual time: what is due, in the order of its time; equal times in the order in which they were asked for.
//
// Pure; time jumps from one event to the next.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

namespace sluice::sim {

class Scheduler {
 public:
  using Action = std::function<void()>;

  uint64_t now_ns() const { return now_ns_; }
  void at(uint64_t time_ns, Action action) {
    heap_.push_back({std::max(time_ns, now_ns_), serial_++, std::move(action)});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }
  void after(uint64_t delay_ns, Action action) { at(now_ns_ + delay_ns, std::move(action)); }
  // Runs the next one; false when there is none before `limit_ns`, which is then the time.
  bool step(uint64_t limit_ns) {
    if (heap_.empty() || heap_.front().time_ns > limit_ns) {
      now_ns_ = std::max(now_ns_, limit_ns);
      return false;
    }
    std::pop_heap(heap_.begin(), heap_.end(), later);
    Entry entry = std::move(heap_.back());
    heap_.pop_back();
    now_ns_ = entry.time_ns;
    entry.action();
    return true;
  }
  size_t pending() const { return heap_.size(); }

 private:
  struct Entry {
    uint64_t time_ns;
    uint64_t serial;
    Action action;
  };
  static bool later(const Entry& a, const Entry& b) {
    return a.time_ns != b.time_ns ? a.time_ns > b.time_ns : a.serial > b.serial;
  }
  uint64_t now_ns_ = 1'000'000'000;
  uint64_t serial_ = 0;
  std::vector<Entry> heap_;
};

}  // namespace sluice::sim
