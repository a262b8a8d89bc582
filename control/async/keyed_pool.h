// Threads for calls that somebody else can hold up for as long as it likes: those into the file systems of
// exports.
//
// Each key (an export) has places of its own, so a file system that hangs holds up whoever needs it and
// nobody else. Threads are started when they are needed and end when nothing is to do. How long a call
// has got no further is known (what takes long because there is much to do notes its progress:
// dataplane/base/progress.h); at the end of the process, those that never return are
// left to themselves.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "control/async/notify.h"

namespace sluice::async {

class KeyedPool {
 public:
  // `most`: so many calls of one key run at a time.
  KeyedPool(asio::io_context& io, uint32_t most);
  ~KeyedPool();  // waits for what runs, unless it was settled
  KeyedPool(const KeyedPool&) = delete;
  KeyedPool& operator=(const KeyedPool&) = delete;

  struct Key {
    std::string name;   // shown to people
    std::string owner;  // who is asked about with waited_ns(): a session; empty: nobody
    uint32_t most = 0;  // 0: as the pool has it
  };
  // Runs `work` on a thread and hands its result to `then` in the loop.
  template <typename Work, typename Then>
  void run(Key key, Work work, Then then) {
    using R = std::invoke_result_t<Work&>;
    struct Call {
      Work work;
      Then then;
    };
    const auto call = std::make_shared<Call>(Call{std::move(work), std::move(then)});
    enqueue(std::move(key), [&io = io_, guard = asio::make_work_guard(io_), call] {
      auto result = std::make_shared<R>(call->work());
      asio::post(io, [guard, result = std::move(result), then = std::move(call->then)]() mutable {
        then(std::move(*result));
      });
    });
  }

  // The same for a coroutine of the loop. As with Pool, callers name what they pass, and a
  // KeyedPart as well, before they wait.
  template <typename Work>
  asio::awaitable<std::invoke_result_t<Work&>> wait_for(Key key, Work work) {
    using R = std::invoke_result_t<Work&>;
    struct Answer {
      explicit Answer(asio::io_context& io) : done(io) {}
      Notify done;
      std::optional<R> result;
    };
    const auto answer = std::make_shared<Answer>(io_);
    run(std::move(key), std::move(work), [answer](R result) {
      answer->result.emplace(std::move(result));
      answer->done.notify();
    });
    while (!answer->result) co_await answer->done.wait();
    co_return std::move(*answer->result);
  }

  struct Wait {
    std::string key;
    uint64_t waited_ns = 0;  // the longest of its calls, since it got any further
    uint32_t running = 0;
    uint32_t queued = 0;
  };
  // The keys with a call that got no further for so long. Any thread, as all that follows.
  std::vector<Wait> waits(uint64_t now_ns, uint64_t least_ns) const;
  // For how long the call of this owner that has waited the longest got no further: in its file system, or
  // behind others that are held up there. 0: it has none.
  uint64_t waited_ns(const std::string& owner, uint64_t now_ns) const;
  uint32_t threads() const;
  // Forgets what has not begun, and waits so long for what has. False: some of it still runs. Then nothing
  // that it uses may be destroyed: the process must end as it is.
  bool settle(std::chrono::milliseconds limit);

 private:
  struct State;
  void enqueue(Key key, std::function<void()> call);

  asio::io_context& io_;
  const std::shared_ptr<State> state_;
};

// A pool, as one key uses it.
struct KeyedPart {
  KeyedPool& pool;
  KeyedPool::Key key;

  template <typename Work, typename Then>
  void run(Work work, Then then) const {
    pool.run(key, std::move(work), std::move(then));
  }
  template <typename Work>
  asio::awaitable<std::invoke_result_t<Work&>> wait_for(Work work) const {
    return pool.wait_for(key, std::move(work));
  }
};

}  // namespace sluice::async
