// Waits for the end of a session: for as long as its node tells of it, or for a time.
//
// Any thread; it blocks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "control/client/call.h"

namespace sluice::api {

struct Watched {
  enum class End : uint8_t {
    kStandsStill,  // it has ended, or an error holds it
    kEnough,       // `on_change` said so
    kTimeOver,
    kBroken,  // see `failure`; without one the node ended the stream too early
  };
  End end = End::kBroken;
  Session last;  // as it was told last; without an id nothing was told
  std::optional<Failure> failure;
};

// Calls `on_change` at once, at each change and once a second, until it returns false.
Watched watch_session(Control::Stub& control, const std::string& id, std::optional<double> timeout_s,
                      const std::function<bool(const Session&)>& on_change);

}  // namespace sluice::api
