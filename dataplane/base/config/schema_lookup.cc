// Keys and sections by their names, and those that were probably meant.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "dataplane/base/config/schema.h"

namespace sluice::config {
namespace {

// Edit distance (insertions, deletions, replacements), for "did you mean".
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest_key(std::string_view section, std::string_view name) {
  const Key* best = nullptr;
  size_t best_distance = SIZE_MAX;
  for (const Key& key : schema()) {
    const size_t d = 2 * distance(name.substr(0, 64), key.name) + (key.section == section ? 0 : 1);
    if (d < best_distance) {
      best_distance = d;
      best = &key;
    }
  }
  return in_section(best->section, best->name);
}

std::string nearest_section(std::string_view name) {
  std::string_view best;
  for (const Key& key : schema()) {
    if (best.empty() || distance(name.substr(0, 64), key.section) < distance(name.substr(0, 64), best))
      best = key.section;
  }
  return section_header(best);
}

bool section_known(std::string_view name) {
  if (name == "export.quota") return false;  // it stands within an export
  return std::any_of(schema().begin(), schema().end(), [&](const Key& key) { return key.section == name; });
}

const Key* find_key(std::string_view section, std::string_view name) {
  for (const Key& key : schema()) {
    if (key.section == section && key.name == name) return &key;
  }
  return nullptr;
}

}  // namespace sluice::config
