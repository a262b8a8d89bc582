// The newest look at the node, for whoever scrapes it.
//
// Any thread may ask. The look itself is a copy made on control's loop, asked for only when somebody
// scrapes, and at most once in `fresh` however many do: scrapers cost the loop one short turn a second.
// A loop that is held up is waited for `patience`; then the last look is told again, whose age says
// what is wrong.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <memory>

#include "control/metrics/figures.h"

namespace sluice::exporter {

struct Snapshot {
  std::shared_ptr<const metrics::NodeFigures> figures;  // nothing: the loop has never answered yet
  std::chrono::steady_clock::time_point taken;
};

class Snapshots {
 public:
  using Look = std::function<metrics::NodeFigures()>;  // called on the loop; lives as long as that runs
  struct Times {
    std::chrono::milliseconds fresh{1000};
    std::chrono::milliseconds patience{2000};
  };

  Snapshots(asio::io_context& io, Look look, Times times);
  ~Snapshots();
  Snapshots(const Snapshots&) = delete;
  Snapshots& operator=(const Snapshots&) = delete;

  Snapshot newest();
  void stop();  // nobody waits any more, nor later

 private:
  struct State;

  asio::io_context& io_;
  const Times times_;
  const std::shared_ptr<State> state_;  // an order may still lie in the loop when this object has gone
};

}  // namespace sluice::exporter
