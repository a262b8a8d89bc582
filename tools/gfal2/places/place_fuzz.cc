// Any URL: it is refused, or is a path without `..`, NUL and empty parts; and names of lists lead back to
// themselves.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/check.h"
#include "tools/gfal2/places/place.h"
#include "tools/gfal2/places/problem.h"

namespace {

using namespace sluice;

void check_path(std::string_view path) {
  CHECK(path.size() <= 4096 && path.find('\0') == std::string_view::npos, "a path of Linux");
  while (!path.empty()) {
    const std::string_view part = path.substr(0, path.find('/'));
    CHECK(!part.empty() && part != ".." && part != "." && part.size() <= 255, "a name in a directory");
    path.remove_prefix(std::min(part.size() + 1, path.size()));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const std::string& url : {text, "sluice://b/" + text}) {
    try {
      const gfal::Place place = gfal::place_of(url);
      if (place.node.empty()) continue;
      check_path(place.path);
      const std::string name = gfal::last_part(place.path);
      const gfal::Place again = gfal::place_of("sluice://b/" + gfal::escaped(name));
      CHECK(again.path == name, "a name of a list is the name that it was");
    } catch (const gfal::Problem& problem) {
      CHECK(problem.reason() > 0, "an errno");
    }
  }
  return 0;
}
