// SPDX-License-Identifier: Apache-2.0
#include "control/async/keyed_pool.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <list>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>

#include "control/async/clock.h"
#include "dataplane/base/progress.h"

namespace sluice::async {
namespace {

constexpr std::chrono::seconds kIdle{10};  // a thread with nothing to do ends then

}  // namespace

// Threads hold it: one that never comes back from a call keeps it for good.
struct KeyedPool::State : std::enable_shared_from_this<KeyedPool::State> {
  struct Queued {
    std::string owner;
    std::function<void()> call;
  };
  struct Running {
    std::string owner;
    std::atomic<uint64_t> further_ns{0};
  };
  struct OfKey {
    uint32_t most = 0;
    std::deque<Queued> queue;
    std::list<Running> running;
  };

  // Under the mutex.
  bool may_begin(const OfKey& of) const { return !of.queue.empty() && of.running.size() < of.most; }
  void offer(const std::string& name) {
    if (std::ranges::find(ready, name) == ready.end()) ready.push_back(name);
    if (idle < ready.size()) start_thread();
    wake.notify_one();
  }
  void start_thread() {
    try {
      std::thread([self = shared_from_this()] { self->work(); }).detach();
    } catch (const std::system_error&) {  // who runs now takes it, or the next call tries again
      return;
    }
    ++threads;
    ++idle;  // from now on, so that no more are started than there are calls
  }
  static uint64_t waited_ns(const OfKey& of, uint64_t now_ns) {
    uint64_t oldest_ns = now_ns;
    for (const Running& each : of.running)
      oldest_ns = std::min(oldest_ns, each.further_ns.load(std::memory_order_relaxed));
    return now_ns - oldest_ns;
  }

  void work() {
    (void)pthread_setname_np(pthread_self(), "sluice-files");
    std::unique_lock lock(mutex);
    for (;;) {
      const bool more = wake.wait_for(lock, kIdle, [this] { return closed || !ready.empty(); });
      --idle;
      if (closed || !more) break;
      const std::string name = ready.front();
      ready.pop_front();
      OfKey& of = keys.at(name);
      Queued next = std::move(of.queue.front());
      of.queue.pop_front();
      const auto mine = of.running.emplace(of.running.end());
      mine->owner = std::move(next.owner);
      mine->further_ns = monotonic_ns();
      if (may_begin(of)) offer(name);
      lock.unlock();
      base::progress_ns = &mine->further_ns;
      next.call();
      next.call = nullptr;
      base::progress_ns = nullptr;
      lock.lock();
      ++idle;
      of.running.erase(mine);
      if (may_begin(of)) {
        offer(name);
      } else if (of.queue.empty() && of.running.empty()) {
        keys.erase(name);
      }
    }
    --threads;
    ended.notify_all();
  }

  mutable std::mutex mutex;
  std::condition_variable wake;
  std::condition_variable ended;
  std::map<std::string, OfKey> keys;  // with something to do
  std::deque<std::string> ready;      // of which a call may begin, each once
  uint32_t threads = 0;
  uint32_t idle = 0;
  uint32_t most = 1;
  bool closed = false;
};

KeyedPool::KeyedPool(asio::io_context& io, uint32_t most) : io_(io), state_(std::make_shared<State>()) {
  state_->most = most;
}

KeyedPool::~KeyedPool() {
  while (!settle(std::chrono::hours(1))) {
  }
}

void KeyedPool::enqueue(Key key, std::function<void()> call) {
  const std::lock_guard lock(state_->mutex);
  if (state_->closed) return;
  State::OfKey& of = state_->keys[key.name];
  of.most = key.most != 0 ? key.most : state_->most;
  of.queue.push_back({.owner = std::move(key.owner), .call = std::move(call)});
  if (state_->may_begin(of)) state_->offer(key.name);
}

std::vector<KeyedPool::Wait> KeyedPool::waits(uint64_t now_ns, uint64_t least_ns) const {
  std::vector<Wait> waits;
  const std::lock_guard lock(state_->mutex);
  for (const auto& [name, of] : state_->keys) {
    const uint64_t waited_ns = State::waited_ns(of, now_ns);
    if (waited_ns < least_ns || of.running.empty()) continue;
    waits.push_back({.key = name,
                     .waited_ns = waited_ns,
                     .running = static_cast<uint32_t>(of.running.size()),
                     .queued = static_cast<uint32_t>(of.queue.size())});
  }
  return waits;
}

uint64_t KeyedPool::waited_ns(const std::string& owner, uint64_t now_ns) const {
  uint64_t longest_ns = 0;
  const std::lock_guard lock(state_->mutex);
  for (const auto& [name, of] : state_->keys) {
    for (const State::Running& each : of.running) {
      const uint64_t further_ns = std::min(now_ns, each.further_ns.load(std::memory_order_relaxed));
      if (each.owner == owner) longest_ns = std::max(longest_ns, now_ns - further_ns);
    }
    if (std::ranges::any_of(of.queue, [&owner](const State::Queued& each) { return each.owner == owner; }))
      longest_ns = std::max(longest_ns, State::waited_ns(of, now_ns));
  }
  return longest_ns;
}

uint32_t KeyedPool::threads() const {
  const std::lock_guard lock(state_->mutex);
  return state_->threads;
}

bool KeyedPool::settle(std::chrono::milliseconds limit) {
  std::map<std::string, std::deque<State::Queued>> forgotten;
  std::unique_lock lock(state_->mutex);
  state_->closed = true;
  for (auto& [name, of] : state_->keys) forgotten[name] = std::exchange(of.queue, {});
  state_->ready.clear();
  state_->wake.notify_all();
  return state_->ended.wait_for(lock, limit, [this] { return state_->threads == 0; });
}

}  // namespace sluice::async
