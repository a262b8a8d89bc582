// SPDX-License-Identifier: Apache-2.0
#include "control/exporter/snapshots.h"

#include <asio/post.hpp>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace sluice::exporter {

using std::chrono::steady_clock;

struct Snapshots::State {
  explicit State(Look l) : look(std::move(l)) {}

  const Look look;
  std::mutex mutex;
  std::condition_variable changed;
  Snapshot last;
  uint64_t looks = 0;
  bool ordered = false;
  bool stopped = false;

  void take() {  // on the loop
    {
      const std::lock_guard lock(mutex);
      if (stopped) return;
    }
    auto figures = std::make_shared<const metrics::NodeFigures>(look());
    const std::lock_guard lock(mutex);
    last = {.figures = std::move(figures), .taken = steady_clock::now()};
    ++looks;
    ordered = false;
    changed.notify_all();
  }
};

Snapshots::Snapshots(asio::io_context& io, Look look, Times times)
    : io_(io), times_(times), state_(std::make_shared<State>(std::move(look))) {}

Snapshots::~Snapshots() { stop(); }

Snapshot Snapshots::newest() {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  const bool fresh = state.last.figures && steady_clock::now() - state.last.taken < times_.fresh;
  if (fresh || state.stopped) return state.last;
  if (!state.ordered) {
    state.ordered = true;
    asio::post(io_, [shared = state_] { shared->take(); });
  }
  const uint64_t before = state.looks;
  state.changed.wait_for(lock, times_.patience, [&] { return state.stopped || state.looks != before; });
  return state.last;
}

void Snapshots::stop() {
  const std::lock_guard lock(state_->mutex);
  state_->stopped = true;
  state_->changed.notify_all();
}

}  // namespace sluice::exporter
