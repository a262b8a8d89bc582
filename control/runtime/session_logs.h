// The network logs of a node's sessions: those of the sessions that it has, and of the last that have ended.
//
// On the loop's thread. In memory only: a control that starts anew begins them anew.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include "control/board/session_log.h"
#include "dataplane/base/check.h"

namespace sluice::runtime {

class SessionLogs {
 public:
  static constexpr size_t kEndedKept = 16;

  // Of a session that begins, or that a former control began at this level.
  void begin(const std::string& id, board::LogLevel level) {
    logs_[id] = std::make_shared<board::SessionLog>(level);
  }
  // Made, if there is none: of a session that a peer began, or a former control. One that had ended may be
  // begun anew by its peer.
  std::shared_ptr<board::SessionLog> of(const std::string& id) {
    std::erase(ended_, id);
    std::shared_ptr<board::SessionLog>& log = logs_[id];
    if (log == nullptr) log = std::make_shared<board::SessionLog>(board::LogLevel::kEvents);
    return log;
  }
  board::SessionLog* find(const std::string& id) const {
    const auto found = logs_.find(id);
    return found == logs_.end() ? nullptr : found->second.get();
  }
  void ended(const std::string& id) {
    if (std::find(ended_.begin(), ended_.end(), id) != ended_.end()) return;
    ended_.push_back(id);
    if (ended_.size() <= kEndedKept) return;
    DCHECK(ended_.front() != id, "the one that has just ended is kept");
    logs_.erase(ended_.front());
    ended_.pop_front();
    DCHECK(ended_.size() == kEndedKept, "so many are kept, and no more");
  }

 private:
  std::map<std::string, std::shared_ptr<board::SessionLog>> logs_;
  std::deque<std::string> ended_;
};

}  // namespace sluice::runtime
