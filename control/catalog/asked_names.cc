// SPDX-License-Identifier: Apache-2.0
#include "control/catalog/asked_names.h"

#include <utility>

#include "dataplane/base/path.h"

namespace sluice::catalog {
namespace {

constexpr std::string_view kMemoryName = "memory-";

}  // namespace

std::string_view last_name(std::string_view path) {
  while (true) {
    const std::string_view name = path.substr(path.rfind('/') + 1);
    if ((!name.empty() && name != ".") || name.size() == path.size()) return name;
    path.remove_suffix(name.size() + 1);
  }
}

AskedNames::AskedNames(const std::vector<std::string>& paths, selection::Choice choice)
    : choice_(std::move(choice)) {
  for (const std::string& path : paths) {
    if (path.starts_with(kMemoryPrefix)) {
      memory_ = true;
      continue;
    }
    const std::string_view name = last_name(path);
    if ((name.empty() || name == ".") && !path.starts_with('/')) continue;  // it leads nowhere
    any_ = any_ || base::arriving_name(path).empty();
    tops_.emplace(name);
  }
}

bool AskedNames::include(std::string_view path) const {
  const std::string_view top = path.substr(0, path.find('/'));
  return any_ || tops_.contains(top) || made_up(path);
}

bool AskedNames::include(std::string_view path, bool is_directory) const {
  return include(path) && (made_up(path) || choice_.reaches(path, is_directory));
}

bool AskedNames::made_up(std::string_view path) const {
  return memory_ && path.starts_with(kMemoryName) && path.find('/') == std::string_view::npos;
}

}  // namespace sluice::catalog
