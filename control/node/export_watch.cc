// Exports whose file systems do not answer: named in the log and to operators. Those who wait there hold no
// place of others.
// SPDX-License-Identifier: Apache-2.0
#include <asio/redirect_error.hpp>
#include <asio/use_awaitable.hpp>
#include <map>

#include "control/node/manager.h"
#include "control/runtime/export_key.h"
#include "dataplane/base/log.h"

namespace sluice::node {
namespace {

constexpr auto kLook = std::chrono::seconds(1);

}  // namespace

std::vector<control::KeyedPool::Wait> Manager::export_waits() const {
  const uint64_t now_ns = control::monotonic_ns();
  std::map<std::string, control::KeyedPool::Wait> by_key;
  for (const control::KeyedPool* const pool : pools()) {
    for (control::KeyedPool::Wait& wait : pool->waits(now_ns, runtime::kHeldUpNs)) {
      const auto [at, is_new] = by_key.try_emplace(wait.key, wait);
      if (is_new) continue;
      at->second.waited_ns = std::max(at->second.waited_ns, wait.waited_ns);
      at->second.running += wait.running;
      at->second.queued += wait.queued;
    }
  }
  std::vector<control::KeyedPool::Wait> waits;
  for (auto& [key, wait] : by_key) waits.push_back(std::move(wait));
  return waits;
}

std::vector<control::KeyedPool*> Manager::pools() const {
  return {&services_->files_pool, &services_->packs_pool, &services_->lists_pool, &services_->names_pool,
          &services_->verify_pool};
}

asio::awaitable<void> Manager::watch_exports(std::shared_ptr<bool> alive) {
  const std::shared_ptr<asio::steady_timer> timer = export_timer_;
  while (*alive && !stopping_) {
    look_at_exports();
    timer->expires_after(kLook);
    asio::error_code ignored;
    co_await timer->async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
}

void Manager::look_at_exports() {
  std::set<std::string> now;
  for (const control::KeyedPool::Wait& wait : export_waits()) {
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
  for (const Task& task : tasks_) task->look_at_files();
}

// Not on the loop: closing a file may wait for its file system.
void Manager::close_sources(const std::string& peer, const transfer::Request& request,
                            decltype(runtime::OpenSources::open) open) {
  const exports::Exports exports = services_->exports_for(peer, request.user, request.local_files);
  services_->part(services_->files_pool, exports, runtime::export_key(exports, request.source_paths))
      .run(
          [open = std::move(open)]() mutable {
            open.clear();
            return 0;
          },
          [](int) {});
}

std::string Manager::settle(std::chrono::milliseconds limit) {
  std::string stuck;
  const auto until = std::chrono::steady_clock::now() + limit;
  for (control::KeyedPool* const pool : pools()) {
    const auto left =
        std::max(std::chrono::steady_clock::duration(0), until - std::chrono::steady_clock::now());
    if (pool->settle(std::chrono::duration_cast<std::chrono::milliseconds>(left))) continue;
    for (const control::KeyedPool::Wait& wait : pool->waits(control::monotonic_ns(), 0)) {
      if (stuck.find(wait.key) == std::string::npos) stuck += (stuck.empty() ? "" : ", ") + wait.key;
    }
  }
  return stuck;
}

}  // namespace sluice::node
