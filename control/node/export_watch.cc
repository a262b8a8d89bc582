// SPDX-License-Identifier: Apache-2.0
#include "control/node/export_watch.h"

#include <algorithm>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/redirect_error.hpp>
#include <asio/use_awaitable.hpp>
#include <map>

#include "dataplane/base/check.h"
#include "dataplane/base/log.h"

namespace sluice::node {
namespace {

constexpr auto kExportsLook = std::chrono::seconds(1);

}  // namespace

ExportWatch::ExportWatch(std::shared_ptr<runtime::Services> services, Sessions& sessions)
    : services_(std::move(services)),
      sessions_(sessions),
      timer_(std::make_shared<asio::steady_timer>(services_->io)) {}

ExportWatch::~ExportWatch() { *alive_ = false; }

void ExportWatch::start() { asio::co_spawn(services_->io, watch(alive_), asio::detached); }

void ExportWatch::stop() { timer_->cancel(); }

std::vector<async::KeyedPool::Wait> ExportWatch::waits() const {
  const uint64_t now_ns = async::monotonic_ns();
  std::map<std::string, async::KeyedPool::Wait> by_key;
  for (const async::KeyedPool* const pool : pools()) {
    for (async::KeyedPool::Wait& wait : pool->waits(now_ns, runtime::kHeldUpNs)) {
      const auto [at, is_new] = by_key.try_emplace(wait.key, wait);
      if (is_new) continue;
      at->second.waited_ns = std::max(at->second.waited_ns, wait.waited_ns);
      at->second.running += wait.running;
      at->second.queued += wait.queued;
    }
  }
  std::vector<async::KeyedPool::Wait> all;
  for (auto& [key, wait] : by_key) all.push_back(std::move(wait));
  return all;
}

std::vector<async::KeyedPool*> ExportWatch::pools() const {
  return {&services_->files_pool, &services_->packs_pool, &services_->lists_pool, &services_->names_pool,
          &services_->verify_pool};
}

asio::awaitable<void> ExportWatch::watch(std::shared_ptr<bool> alive) {
  const std::shared_ptr<asio::steady_timer> timer = timer_;
  while (*alive && !sessions_.stopping()) {
    look();
    timer->expires_after(kExportsLook);
    asio::error_code ignored;
    co_await timer->async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
}

void ExportWatch::look() {
  std::set<std::string> now;
  for (const async::KeyedPool::Wait& wait : waits()) {
    DCHECK(wait.running != 0, "a call waits that runs");
    now.insert(wait.key);
    if (held_up_.contains(wait.key)) continue;
    log::of(log::kSession)
        ->warn(
            "{}: its file system has let a call wait for {} s, and {} more wait; what uses other exports "
            "goes on",
            wait.key, wait.waited_ns / 1'000'000'000, wait.running + wait.queued - 1);
  }
  for (const std::string& key : held_up_) {
    if (!now.contains(key)) log::of(log::kSession)->info("{}: its file system answers again", key);
  }
  held_up_ = std::move(now);
  for (const Sessions::Task& task : sessions_.tasks()) task->look_at_files();
}

std::string ExportWatch::settle(std::chrono::milliseconds limit) {
  std::string stuck;
  const auto until = std::chrono::steady_clock::now() + limit;
  for (async::KeyedPool* const pool : pools()) {
    const auto left =
        std::max(std::chrono::steady_clock::duration(0), until - std::chrono::steady_clock::now());
    if (pool->settle(std::chrono::duration_cast<std::chrono::milliseconds>(left))) continue;
    for (const async::KeyedPool::Wait& wait : pool->waits(async::monotonic_ns(), 0)) {
      if (stuck.find(wait.key) == std::string::npos) stuck += (stuck.empty() ? "" : ", ") + wait.key;
    }
  }
  return stuck;
}

}  // namespace sluice::node
