// Work on a stream of things by several threads, whose results are taken in the order of the stream.
//
// Memory is bounded: no more than `window` things are begun and not yet taken. `next` and `take` are called
// by one thread at a time, `work` by several at once. Whoever waits, waits for work that has begun.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace sluice::manifest {

template <typename In, typename Out>
class InOrder {
 public:
  struct Steps {
    std::function<std::optional<In>()> next;  // nothing: the end
    std::function<Out(In&&)> work;
    std::function<bool(Out&&)> take;  // false: enough
  };

  InOrder(size_t threads, size_t window, Steps steps)
      : threads_(threads), window_(window), steps_(std::move(steps)) {}

  void run() {
    std::vector<std::thread> others;
    for (size_t i = 1; i < threads_; ++i) others.emplace_back([this] { serve(); });
    serve();
    for (std::thread& other : others) other.join();
  }

 private:
  void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      room_.wait(lock, [this] { return ended_ || begun_ - taken_ < window_; });
      if (ended_) return;
      std::optional<In> thing = steps_.next();
      if (!thing) {
        ended_ = true;
        room_.notify_all();
        return;
      }
      const size_t number = begun_++;
      lock.unlock();
      Out result = steps_.work(std::move(*thing));
      lock.lock();
      done_.emplace(number, std::move(result));
      take_ready();
    }
  }

  void take_ready() {
    for (auto first = done_.find(taken_); first != done_.end(); first = done_.find(taken_)) {
      if (enough_ || !steps_.take(std::move(first->second))) {
        enough_ = true;
        ended_ = true;
      }
      done_.erase(first);
      ++taken_;
    }
    room_.notify_all();
  }

  const size_t threads_;
  const size_t window_;
  const Steps steps_;
  std::mutex mutex_;
  std::condition_variable room_;
  std::map<size_t, Out> done_;
  size_t begun_ = 0;
  size_t taken_ = 0;
  bool ended_ = false;
  bool enough_ = false;
};

}  // namespace sluice::manifest
