// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/listener.h"

#include <grpcpp/grpcpp.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "control/client/call.h"
#include "control/client/requests.h"
#include "control/client/way.h"

namespace sluice::cli {
namespace {

constexpr int kCallWaitMostS = 15;
constexpr size_t kUntakenMax = 100'000;  // that nobody has taken yet; more are counted as missed

}  // namespace

Listener::Listener(std::filesystem::path node_directory, std::string session)
    : node_directory_(std::move(node_directory)),
      session_(std::move(session)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_([this] { run(); }) {}

Listener::~Listener() {
  {
    const std::lock_guard lock(mutex_);
    leaving_ = true;
    if (call_ != nullptr) call_->TryCancel();
  }
  leaving_changed_.notify_all();
  thread_.join();
}

Listener::News Listener::take() {
  eventfd_t count = 0;
  (void)::eventfd_read(wake_.get(), &count);
  const std::lock_guard lock(mutex_);
  return std::exchange(news_, {});
}

void Listener::tell() { (void)::eventfd_write(wake_.get(), 1); }

bool Listener::wait(int seconds) {
  std::unique_lock lock(mutex_);
  return !leaving_changed_.wait_for(lock, std::chrono::seconds(seconds), [this] { return leaving_; });
}

void Listener::run() {
  int wait_s = 1;
  do {
    const Status status = listen();
    const std::lock_guard lock(mutex_);
    if (leaving_) return;
    if (status && !session_.empty()) {
      news_.over = true;
      tell();
      return;
    }
    wait_s = in_trouble_ ? std::min(2 * wait_s, kCallWaitMostS) : 1;
    if (!std::exchange(in_trouble_, true)) {
      news_.trouble = status
                          ? Error{ErrorCode::kDaemonNotRunning, "sluice-control ended the stream of events"}
                          : status.error();
      tell();
    }
  } while (wait(wait_s));
}

Status Listener::listen() {
  Result<UniqueFd> connection = api::connect_to(node_directory_);
  if (!connection) return connection.error();
  const auto stub = api::Control::NewStub(api::channel_over(std::move(*connection)));
  api::Call call(*stub, std::nullopt);
  {
    const std::lock_guard lock(mutex_);
    if (leaving_) return {};
    call_ = call.context();
    news_.missed = true;
  }
  tell();
  const auto failure = call.read(stub->SessionEvents(call.context(), api::reference(session_)),
                                 [this](const api::SessionEvent& event) { return hear(event); });
  const std::lock_guard lock(mutex_);
  call_ = nullptr;
  if (!failure) return {};
  return api::error_of(*failure);
}

bool Listener::hear(const api::SessionEvent& event) {
  {
    const std::lock_guard lock(mutex_);
    in_trouble_ = false;
    if (event.dropped() != 0 || news_.events.size() >= kUntakenMax) {
      news_.missed = true;
    } else {
      news_.events.push_back(event);
    }
    if (leaving_) return false;
  }
  tell();
  return true;
}

}  // namespace sluice::cli
