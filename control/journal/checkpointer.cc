// SPDX-License-Identifier: Apache-2.0
#include "control/journal/checkpointer.h"

#include <chrono>
#include <utility>

namespace sluice::journal {
namespace {

uint64_t now_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

}  // namespace

Checkpointer::Checkpointer(std::mutex& mutex, std::function<void()> work)
    : mutex_(mutex), work_(std::move(work)), thread_([this] { run(); }) {}

Checkpointer::~Checkpointer() {
  {
    const std::scoped_lock lock(mutex_);
    closing_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Checkpointer::written(uint32_t pages) {
  const uint64_t now = now_ns();
  checkpoint_.written(pages, now);
  if (checkpoint_.due_ns() <= now) {
    make();
  } else if (checkpoint_.due_ns() != UINT64_MAX) {
    changed_.notify_one();
  }
}

void Checkpointer::make() {
  work_();
  checkpoint_.done();
}

void Checkpointer::run() {
  std::unique_lock lock(mutex_);
  while (!closing_) {
    const uint64_t due_ns = checkpoint_.due_ns();
    const uint64_t now = now_ns();
    if (due_ns == UINT64_MAX) {
      changed_.wait(lock);
    } else if (now < due_ns) {
      changed_.wait_for(lock, std::chrono::nanoseconds(due_ns - now));
    } else {
      make();
    }
  }
}

}  // namespace sluice::journal
