// What an auditor is told of a console (control/api/console_door.h): which person of this host asked for
// what.
//
// Pure. docs/REFERENCE.md, "Audit log", has the keys.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::audit {

struct ConsoleAsked {
  std::string_view user;
  uint32_t uid = 0;
  std::string_view role;
  std::string_view method;   // of the API
  std::string_view subject;  // an id, a path, a peer
  std::string_view error;    // empty: it was done
};
std::string console_asked(const ConsoleAsked& call, int64_t now_unix_ns);

}  // namespace sluice::audit
