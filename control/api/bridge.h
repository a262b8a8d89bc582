// From gRPC's threads to control's loop and back: work is posted there, and its result waited for; and what
// an Error is as a status of gRPC.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <grpcpp/grpcpp.h>

#include <asio/awaitable.hpp>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <exception>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "dataplane/base/error.h"

namespace sluice::service {

// With the trailing metadata of control/proto/error_metadata.h.
grpc::Status to_grpc(grpc::ServerContext* context, const Error& error);

class Bridge {
 public:
  explicit Bridge(asio::io_context& io) : io_(io) {}

  // Runs `work` on the io_context's thread and waits for what it returns. Should the io_context be
  // destroyed first, the promise breaks, and that is an answer as well.
  template <typename Work>
  auto on_io(Work work) -> decltype(work()) {
    auto task = std::make_shared<std::packaged_task<decltype(work())()>>(std::move(work));
    auto result = task->get_future();
    asio::post(io_, [task = std::move(task)] { (*task)(); });
    try {
      return result.get();
    } catch (const std::exception& e) {
      return unanswered(e);
    }
  }

  // The same for what waits for something there.
  template <typename R>
  R await_io(asio::awaitable<R> work) {
    return result_of(begin(std::move(work)));
  }
  // For a caller that may not want to wait to its end: what it leaves behind goes where it lives.
  template <typename R>
  std::future<R> begin(asio::awaitable<R> work) {
    auto promise = std::make_shared<std::promise<R>>();
    auto result = promise->get_future();
    asio::co_spawn(io_, keep_promise(std::move(work), std::move(promise)), asio::detached);
    return result;
  }
  template <typename R>
  static R result_of(std::future<R> future) {
    try {
      return future.get();
    } catch (const std::exception& e) {
      return unanswered(e);
    }
  }

 private:
  template <typename R>
  static asio::awaitable<void> keep_promise(asio::awaitable<R> work,
                                            std::shared_ptr<std::promise<R>> promise) {
    promise->set_value(co_await std::move(work));
  }

  static Error unanswered(const std::exception& e) {
    return {ErrorCode::kInternal, std::string("sluice-control could not answer: ") + e.what()};
  }

  asio::io_context& io_;
};

}  // namespace sluice::service
