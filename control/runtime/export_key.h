// The export that work belongs to: KeyedPool keeps the work of each export apart.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "control/exports/exports.h"

namespace sluice::runtime {

inline constexpr const char* kSeveralExports = "several exports";

// The name of the export in which all of these lie. Does not touch the file system.
inline std::string export_key(const exports::Exports& exports, const std::vector<std::string>& paths) {
  std::string key;
  for (const std::string& path : paths) {
    const std::string name = exports.export_of(path);
    if (name.empty() || name == key) continue;
    if (!key.empty()) return kSeveralExports;
    key = name;
  }
  return key;
}

}  // namespace sluice::runtime
