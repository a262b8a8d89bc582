// A condition variable for coroutines of one io_context thread.
//
// A waiter tests its condition, then waits, with nothing in between that suspends: so no wake-up is
// lost. Spurious wake-ups happen; wait in a loop.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <chrono>
#include <list>
#include <memory>

namespace sluice::async {

class Notify {
 public:
  explicit Notify(asio::io_context& io) : io_(io), waiters_(std::make_shared<Waiters>()) {}

  void notify() {
    for (asio::steady_timer* timer : *waiters_) timer->cancel();
  }
  asio::awaitable<void> wait() { return wait_until(io_, waiters_, asio::steady_timer::time_point::max()); }
  asio::awaitable<void> wait_for(std::chrono::nanoseconds timeout) {
    return wait_until(io_, waiters_, std::chrono::steady_clock::now() + timeout);
  }

 private:
  using Waiters = std::list<asio::steady_timer*>;

  // Static, with the list shared: a waiting frame may outlive the Notify when the loop is torn down.
  static asio::awaitable<void> wait_until(asio::io_context& io, std::shared_ptr<Waiters> waiters,
                                          asio::steady_timer::time_point deadline) {
    asio::steady_timer timer(io, deadline);
    struct Entry {
      Waiters& list;
      Waiters::iterator at;
      ~Entry() { list.erase(at); }
    } entry{*waiters, waiters->insert(waiters->end(), &timer)};
    asio::error_code error;
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, error));
  }

  asio::io_context& io_;
  std::shared_ptr<Waiters> waiters_;
};

}  // namespace sluice::async
