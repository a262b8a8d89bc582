// Threads for what blocks (files, syncs, the journal), so that control's loop never does.
//
// Any work, in any order; the queue of one Serial runs one after the other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/strand.hpp>
#include <asio/thread_pool.hpp>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "control/async/notify.h"

namespace sluice::async {

inline constexpr uint32_t kPoolThreads = 4;

class Pool {
 public:
  using Serial = asio::strand<asio::thread_pool::executor_type>;

  explicit Pool(asio::io_context& io, uint32_t threads = kPoolThreads) : io_(io), threads_(threads) {}

  Serial serial() { return asio::make_strand(threads_.get_executor()); }

  // Runs `work` on a thread of the pool and hands its result to `then` in the loop.
  template <typename Work, typename Then>
  void run(Work work, Then then) {
    run_on(threads_.get_executor(), std::move(work), std::move(then));
  }
  template <typename Executor, typename Work, typename Then>
  void run_on(const Executor& executor, Work work, Then then) {
    using R = std::invoke_result_t<Work&>;
    asio::post(executor, [&io = io_, guard = asio::make_work_guard(io_), work = std::move(work),
                          then = std::move(then)]() mutable {
      asio::post(io, [guard, result = std::make_shared<R>(work()), then = std::move(then)]() mutable {
        then(std::move(*result));
      });
    });
  }

  // The same for a coroutine of the loop. Callers name the function before they pass it: GCC 12 destroys a
  // temporary with captures twice when it is an argument of an awaited coroutine.
  template <typename Work>
  asio::awaitable<std::invoke_result_t<Work&>> wait_for(Work work) {
    return wait_on(threads_.get_executor(), std::move(work));
  }
  template <typename Executor, typename Work>
  asio::awaitable<std::invoke_result_t<Work&>> wait_on(Executor executor, Work work) {
    using R = std::invoke_result_t<Work&>;
    // The caller's frame may be gone before the thread is done, when the loop is torn down.
    struct State {
      explicit State(asio::io_context& io) : done(io) {}
      Notify done;
      std::optional<R> result;
    };
    const auto state = std::make_shared<State>(io_);
    run_on(executor, std::move(work), [state](R result) {
      state->result.emplace(std::move(result));
      state->done.notify();
    });
    while (!state->result) co_await state->done.wait();
    co_return std::move(*state->result);
  }

 private:
  asio::io_context& io_;
  asio::thread_pool threads_;
};

}  // namespace sluice::async
