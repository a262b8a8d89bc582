// The nodes of a fleet as they are written.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "dataplane/base/own_files.h"
#include "tools/cli/fleet.h"
#include "tools/cli/format.h"
#include "tools/cli/target.h"

namespace sluice::cli {

Result<std::vector<fleet::Place>> parse_places(const std::string& option,
                                               const std::vector<std::string>& given) {
  std::vector<fleet::Place> places;
  std::set<std::string> known;
  for (const std::string& each : given) {
    const size_t colon = std::min(each.find(':'), each.size());
    for (size_t from = 0; from <= colon;) {
      const size_t comma = std::min(each.find(',', from), colon);
      const auto target = parse_target(each.substr(from, comma - from) + each.substr(colon));
      if (!target) return usage(option + ": " + target.error().message);
      std::string path = target->path;
      while (path.size() > 1 && path.back() == '/') path.pop_back();
      if (path == "/" || api::is_null_destination(path) || api::is_memory_source(path))
        return usage(option + ": " + printable(each) + ": no directory beneath an export");
      if (!known.insert(target->node).second)
        return usage(option + ": " + printable(target->node) + " is named twice");
      places.push_back({.node = target->node, .path = path});
      from = comma + 1;
    }
  }
  return places;
}

std::string own_program() {
  const std::filesystem::path program = base::own_executable();
  if (program.empty()) return "sluice";
  return base::bundle_of(program).empty() ? program.string()
                                          : (base::programs_beside(program) / "sluice").string();
}

}  // namespace sluice::cli
