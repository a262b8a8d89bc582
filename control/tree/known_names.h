// The names that a source has listed before: what of a tree was offered already, when it is read once more.
//
// Some bytes more than its letters for each name. Each is taken once, so that two of one name are not one.
//
// Pure. One thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "control/catalog/catalog.h"
#include "dataplane/base/error.h"

namespace sluice::tree {

class KnownNames {
 public:
  // Of files, and of what is in packs, as they arrive. kStorage: a list cannot be read.
  static Result<KnownNames> of(std::span<const catalog::File> files);
  bool take(std::string_view name);  // it was known
  bool empty() const { return at_.empty(); }
  size_t packs() const { return packs_; }
  size_t large() const { return large_; }  // that are in no pack

 private:
  void add(std::string_view name);
  std::string_view name(size_t i) const { return text_.data() + at_[i]; }  // a path has no zero

  std::string text_;
  std::vector<size_t> at_;  // sorted by what stands there
  std::vector<bool> taken_;
  size_t packs_ = 0;
  size_t large_ = 0;
};

}  // namespace sluice::tree
