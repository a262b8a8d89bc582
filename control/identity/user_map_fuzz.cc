// Any text as a map of users, and any users of nodes: a line that cannot be used is named and nothing counts,
// or each user is judged alike each time, by a line that is there, and nobody is root. The input is the map,
// after a NUL the user, after another one the node.
// SPDX-License-Identifier: Apache-2.0
#include "control/identity/user_map.h"
#include "dataplane/base/input_for_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sluice;
  using identity::UserMap;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const auto next = [&rest] {
    const std::string_view part = rest.substr(0, rest.find('\0'));
    rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    return part;
  };
  const std::string_view text = next();
  const std::string_view user = next();
  const std::string_view node = next();
  const Result<UserMap> map = UserMap::parse(text, "map");
  if (!map) {
    const std::string& why = map.error().message;
    fuzz::require(why.starts_with("map:") && why.find('\n') == std::string::npos && why.size() < 1000,
                  "one line says which line, and why");
    return 0;
  }
  const UserMap::Verdict verdict = map->judge(node, user);
  fuzz::require(verdict == map->judge(node, user), "alike each time");
  switch (verdict.answer) {
    case UserMap::Answer::kAsToday:
      fuzz::require(user.empty() || !map->has_lines_for(node),
                    "a user of a node that has lines is let in by one");
      break;
    case UserMap::Answer::kLocal:
      fuzz::require(!verdict.local.empty() && verdict.line != 0, "a line names somebody");
      fuzz::require(verdict.local != "root", "nobody is root");
      [[fallthrough]];
    case UserMap::Answer::kDenied:
      fuzz::require(map->has_lines_for(node), "lines are about this node");
      fuzz::require(verdict.line != 0 || !user.empty(), "an operator is refused by a line alone");
      break;
  }
  return 0;
}
