// Unfinished files of transfers: of those that let go of them, so that their file systems can be checked; and
// where all of them will stand, so that nobody takes the place away meanwhile. Any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "control/catalog/catalog.h"
#include "dataplane/base/check.h"

namespace sluice::exports {

class Reserved {
 public:
  // As long as what is returned lives.
  static std::shared_ptr<const void> add(const std::shared_ptr<Reserved>& self,
                                         const catalog::FileIdentity& file) {
    return keep(self, &Reserved::files_, std::pair(file.device, file.inode));
  }
  // The absolute path, in bytes, of a file that is not complete.
  static std::shared_ptr<const void> add_path(const std::shared_ptr<Reserved>& self, std::string path) {
    return keep(self, &Reserved::paths_, std::move(path));
  }
  bool contains(const catalog::FileIdentity& file) const {
    const std::scoped_lock lock(mutex_);
    return files_.contains({file.device, file.inode});
  }
  bool has_path(const std::string& path) const {
    const std::scoped_lock lock(mutex_);
    return paths_.contains(path);
  }
  // One that is `path`, or beneath it.
  std::optional<std::string> under_way(const std::string& path) const {
    const std::scoped_lock lock(mutex_);
    if (paths_.contains(path)) return path;
    const std::string beneath = path + "/";
    const auto first = paths_.lower_bound(beneath);
    if (first == paths_.end() || !first->starts_with(beneath)) return std::nullopt;
    return *first;
  }

 private:
  template <typename Set>
  static std::shared_ptr<const void> keep(const std::shared_ptr<Reserved>& self, Set Reserved::*set,
                                          typename Set::value_type value) {
    const std::scoped_lock lock(self->mutex_);
    (self.get()->*set).insert(value);
    return {self.get(), [self, set, value = std::move(value)](const void*) {
              const std::scoped_lock unlock(self->mutex_);
              const auto at = (self.get()->*set).find(value);
              DCHECK(at != (self.get()->*set).end(), "what is reserved is there until it is given back");
              (self.get()->*set).erase(at);
            }};
  }

  mutable std::mutex mutex_;
  std::multiset<std::pair<uint64_t, uint64_t>> files_;  // device and inode
  std::multiset<std::string> paths_;
};

}  // namespace sluice::exports
