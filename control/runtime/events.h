// The queue of a transfer's events, in which performers put what came of its effects.
//
// On the loop's thread. Performers hold it weakly: what ends after the transfer is of no interest.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "control/words/events.h"

namespace sluice::runtime {

class EventQueue {
 public:
  virtual ~EventQueue() = default;
  virtual void post(transfer::Event event) = 0;
};

inline void post_to(const std::weak_ptr<EventQueue>& queue, transfer::Event event) {
  if (const auto alive = queue.lock()) alive->post(std::move(event));
}

}  // namespace sluice::runtime
