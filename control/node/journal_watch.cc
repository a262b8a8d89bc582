// SPDX-License-Identifier: Apache-2.0
#include "control/node/journal_watch.h"

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/redirect_error.hpp>
#include <asio/use_awaitable.hpp>
#include <chrono>

#include "dataplane/base/log.h"

namespace sluice::node {
namespace {

constexpr auto kJournalLook = std::chrono::seconds(5);

}  // namespace

JournalWatch::JournalWatch(std::shared_ptr<runtime::Services> services, Sessions& sessions)
    : services_(std::move(services)),
      sessions_(sessions),
      timer_(std::make_shared<asio::steady_timer>(services_->io)) {}

JournalWatch::~JournalWatch() { *alive_ = false; }

void JournalWatch::start() { asio::co_spawn(services_->io, watch(alive_), asio::detached); }

void JournalWatch::stop() { timer_->cancel(); }

asio::awaitable<void> JournalWatch::watch(std::shared_ptr<bool> alive) {
  const std::shared_ptr<runtime::Services> services = services_;
  const std::shared_ptr<asio::steady_timer> timer = timer_;
  for (;;) {
    auto look = [services] { return services->journal->stands(); };
    const bool stands = co_await services->pool.wait_for(std::move(look));
    if (!*alive || sessions_.stopping()) co_return;
    note(!stands);
    asio::error_code ignored;
    timer->expires_after(kJournalLook);
    co_await timer->async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    if (!*alive || sessions_.stopping()) co_return;
  }
}

void JournalWatch::note(bool lost) {
  if (lost == std::exchange(lost_, lost)) return;
  const std::string path = services_->node.journal().string();
  if (!lost) return log::of(log::kSession)->info("journal {}: stands in its place again", path);
  log::of(log::kSession)
      ->error(
          "journal {}: was removed, moved or replaced while it is open: what is written to it is lost when "
          "sluice-control ends; put it back, or let the sessions end and start sluice-control again",
          path);
}

}  // namespace sluice::node
