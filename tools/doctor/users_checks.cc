// Are files opened as users, and does a map say who of peers' users is who here?
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "dataplane/base/counted.h"
#include "tools/doctor/checks.h"
#include "tools/doctor/findings.h"

namespace sluice::doctor {

void check_users(const Facts& facts, std::vector<Finding>& out) {
  if (!facts.users) return;
  const UsersFacts& users = *facts.users;
  const std::string& file = facts.node->users_map_file;
  if (users.helper_problem.empty()) {
    pass(out, "users", "sluice-users answers");
  } else if (hidden(facts, users.helper_problem)) {
    warn(out, "users", unseen(facts), as_owner(facts));
  } else {
    (file.empty() ? warn : fail)(
        out, "users",
        fmt::format("sluice-users does not answer at {} ({}): nothing beneath the exports is opened as a "
                    "user of this host",
                    facts.node->users_helper_socket().string(), users.helper_problem),
        fmt::format("systemctl enable --now sluice-users.socket, or sluice-users --node {} as root",
                    facts.directory));
  }
  if (file.empty()) return;
  if (!users.map_nobody.empty()) {
    const size_t more = users.map_nobody.size() - 1;
    warn(out, "users map",
         users.map_nobody.front() +
             (more == 0 ? "" : fmt::format("; and {} more", base::counted(more, "line"))),
         "make the user, add him to the group, or correct the line: whom it fits is refused until then");
  } else if (users.map_problem.empty()) {
    pass(out, "users map",
         fmt::format("{} of {} say who of the peers' users is who here",
                     base::counted(users.map_lines, "line"), file));
  } else if (hidden(facts, users.map_problem)) {
    warn(out, "users map", unseen(facts), as_owner(facts));
  } else {
    fail(out, "users map", users.map_problem,
         "correct it: while sluice-control runs, the map that it read before counts; it does not start with "
         "this one");
  }
}

}  // namespace sluice::doctor
