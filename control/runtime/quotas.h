// Which sessions that peers began, or that are those of users of this host, are beneath which exports, and
// whether they may take what they want to.
//
// A session counts in its export from when its first files are known until it is complete or has ended, over
// pauses, interruptions and restarts. What one takes is what its list says: so a quota is judged before
// anything is stored, and again with each part of a list that grows. On the loop's thread; pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "control/exports/exports.h"
#include "dataplane/base/error.h"

namespace sluice::runtime {

class Quotas {
 public:
  explicit Quotas(std::string node_name) : node_name_(std::move(node_name)) {}

  struct Taken {  // by one session, as far as its list is known
    uint64_t bytes = 0;
    uint64_t files = 0;
  };
  // `who`: "peer alpha", "user alice"; a session of a peer's may be a user's as well. kQuota names the
  // export, whose quota it is, the limit and what there is. Otherwise the session counts from now on.
  Status admit(const std::string& session, const std::string& who, const std::vector<exports::QuotaOf>& of,
               const Taken& taken);
  // It was admitted before, by a former control.
  void enter(const std::string& session, const std::string& who, const std::vector<exports::QuotaOf>& of);
  void leave(const std::string& session) { sessions_.erase(session); }

 private:
  using Place = std::pair<std::string, std::string>;  // whose, and the name of the export
  // Others of theirs.
  uint64_t count(const std::string& session, const Place& place) const;
  Error over(const exports::QuotaOf& of, const std::string& who, const std::string& what) const;

  const std::string node_name_;
  std::map<std::string, std::set<Place>> sessions_;  // by their ids
};

// The least of them; 0: there is none.
uint64_t ceiling_bps(const std::vector<exports::QuotaOf>& of);

}  // namespace sluice::runtime
