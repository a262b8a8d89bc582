// What changes at sessions, from one look at them to the next: the events that an operator's program reads.
//
// One reader each. On control's loop; what it remembers is bounded by the sessions that have not ended.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "control/api/session_manager.h"

namespace sluice::service {

class SessionChanges {
 public:
  static constexpr size_t kEventsMax = 1000;      // of one look; more are counted
  static constexpr uint32_t kLooksForFiles = 10;  // a list of files may be long: seldom, and at the end
  static constexpr uint32_t kLooksForProgress = 10;

  // `id`: of one session; empty: of all that have not ended. `progress`: how far they are as well.
  explicit SessionChanges(std::string id, bool progress = false) : id_(std::move(id)), progress_(progress) {}

  // kUsage: there is no such session.
  Result<std::vector<api::SessionEvent>> look(const SessionManager& sessions, int64_t unix_ns);
  bool over() const { return over_; }  // the one session has ended, and that was told

 private:
  struct Known {
    api::Session last;  // without its files
    std::vector<bool> files_done;
    uint64_t names_seen = 0;  // done or failed, when its files were last looked at
    uint32_t looks = 0;       // since then
    uint32_t quiet = 0;       // looks since its progress was told
    uint64_t bytes_told = 0;
    uint32_t place_told = 0;
  };

  std::vector<api::Session> look_at_all(const SessionManager& sessions);
  void compare(const api::Session& now, std::vector<api::SessionEvent>* out);
  void tell_progress(const api::Session& now, Known* known, std::vector<api::SessionEvent>* out);
  void compare_files(const api::Session& full, Known* known, std::vector<api::SessionEvent>* out);
  void add(const char* event, const api::Session& session, std::vector<api::SessionEvent>* out);

  const std::string id_;
  const bool progress_;
  std::map<std::string, Known> known_;
  std::optional<std::set<std::string>> ended_;  // that had ended at the last look
  int64_t unix_ns_ = 0;
  uint64_t dropped_ = 0;
  bool over_ = false;
};

}  // namespace sluice::service
