// What all sessions of this node share. Lives as long as the last of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/thread_pool.hpp>
#include <list>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "control/board/client.h"
#include "control/exports/exports.h"
#include "control/identity/identity.h"
#include "control/journal/journal.h"
#include "dataplane/base/config/config.h"

namespace sluice::control {

inline constexpr uint32_t kPoolThreads = 4;  // for what blocks: files, syncs, the journal

struct Context {
  Context(asio::io_context& context, config::Node n, identity::Identity i, exports::Exports e,
          std::unique_ptr<journal::Journal> j)
      : io(context),
        node(std::move(n)),
        identity(std::move(i)),
        exports(std::move(e)),
        journal(std::move(j)),
        board(std::make_shared<BoardClient>(context, node)) {}

  asio::io_context& io;
  const config::Node node;
  const identity::Identity identity;
  const exports::Exports exports;
  const std::unique_ptr<journal::Journal> journal;
  const std::shared_ptr<BoardClient> board;
  asio::thread_pool pool{kPoolThreads};
  // Sessions that wait for extent buffers, first come first served, per board::Direction.
  std::list<const void*> rx_queue;
  std::list<const void*> tx_queue;
};

// Runs blocking `work` on the pool and comes back to the caller's thread with its result. The state is
// shared: the caller's frame may be gone before the pool thread is done, when the loop is torn down.
// Callers name the function before they pass it: GCC 12 destroys a temporary with captures twice when it
// is an argument of an awaited coroutine.
template <typename F>
asio::awaitable<std::invoke_result_t<F&>> in_pool(std::shared_ptr<Context> context, F work) {
  using R = std::invoke_result_t<F&>;
  struct State {
    explicit State(asio::io_context& io) : done(io) {}
    Notify done;
    std::optional<R> result;
  };
  const auto state = std::make_shared<State>(context->io);
  const auto guard = asio::make_work_guard(context->io);
  asio::post(context->pool, [state, guard, &io = context->io, work = std::move(work)]() mutable {
    asio::post(io, [state, guard, result = std::make_shared<R>(work())] {
      state->result.emplace(std::move(*result));
      state->done.notify();
    });
  });
  while (!state->result) co_await state->done.wait();
  co_return std::move(*state->result);
}

}  // namespace sluice::control
