// What the files of class Moves share. Included by them alone.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "control/node/moves.h"
#include "control/transfer/peer_call.h"

namespace sluice::node {

inline constexpr std::chrono::milliseconds kLookAgain{20};

inline Error stops() { return {ErrorCode::kDaemonNotRunning, "sluice-control is stopping"}; }

inline Error cannot_move(std::string message) { return {ErrorCode::kUsage, std::move(message)}; }

inline std::vector<journal::ExportPlace> places_of(const config::Node& node) {
  std::vector<journal::ExportPlace> places;
  for (const config::Export& each : node.exports)
    places.push_back({.name = each.name, .path = each.path.string()});
  return places;
}

// A session that this node has given away, and for which it did not ask back in vain.
inline bool given_away(const transfer::Record& record) {
  return transfer::moved_away(record) && !record.moved->to.empty();
}

// Nobody begins anything under its id while this lives.
struct Moves::Busy {
  Busy(Moves& its, std::string which) : moves(its), alive(its.alive_), id(std::move(which)) {
    moves.busy_.insert(id);
  }
  ~Busy() {
    if (*alive) moves.busy_.erase(id);
  }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;
  Moves& moves;
  const std::shared_ptr<bool> alive;
  const std::string id;
};

}  // namespace sluice::node
