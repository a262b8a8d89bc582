// SPDX-License-Identifier: Apache-2.0
#include "control/tree/known_names.h"

#include <algorithm>

#include "control/tree/pack.h"

namespace sluice::tree {

void KnownNames::add(std::string_view name) {
  at_.push_back(text_.size());
  text_.append(name).push_back('\0');
}

Result<KnownNames> KnownNames::of(std::span<const catalog::File> files) {
  KnownNames all;
  for (const catalog::File& file : files) {
    if (!file.packed()) {
      all.add(file.name);
      ++all.large_;
      continue;
    }
    ++all.packs_;
    Result<std::vector<Entry>> entries = file.pack.list ? from_bytes(*file.pack.list) : std::vector<Entry>();
    if (!entries) return entries.error();
    for (const Entry& entry : *entries) all.add(entry.path);
  }
  std::sort(all.at_.begin(), all.at_.end(), [&all](size_t a, size_t b) {
    return std::string_view(all.text_.data() + a) < std::string_view(all.text_.data() + b);
  });
  all.taken_.resize(all.at_.size());
  return all;
}

bool KnownNames::take(std::string_view wanted) {
  const auto first = std::partition_point(
      at_.begin(), at_.end(), [&](size_t at) { return std::string_view(text_.data() + at) < wanted; });
  for (auto i = static_cast<size_t>(first - at_.begin()); i < at_.size() && name(i) == wanted; ++i) {
    if (taken_[i]) continue;
    taken_[i] = true;
    return true;
  }
  return false;
}

}  // namespace sluice::tree
