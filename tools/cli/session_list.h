// What `sluice session list` prints: which sessions, and a table of them. Pure; the time is an argument.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "control/proto/api.pb.h"
#include "dataplane/base/error.h"

namespace sluice::cli {

struct ListFilter {
  std::vector<std::string> states;  // as state_name() has them, "active" or "ended"; empty: any
  std::string peer;                 // empty: any
  std::optional<int64_t> since_unix_ns;
};

// Those that `--state` takes. check_states(): kUsage where a word is none of them.
std::vector<std::string> state_words();
Status check_states(const std::vector<std::string>& states);

// Those that fit, in the order in which they were.
api::ListSessionsReply filtered(const api::ListSessionsReply& all, const ListFilter& filter);

// A head and a line for each, of at most `columns`; behind it, indented, what holds a session or ended it.
// `cuts`: names of files are cut to that width as well.
std::string session_table(const api::ListSessionsReply& sessions, size_t columns, bool cuts,
                          int64_t unix_now_ns);

}  // namespace sluice::cli
