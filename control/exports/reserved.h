// Unfinished files of transfers that let go of them, so that their file systems can be checked.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "control/catalog/catalog.h"

namespace sluice::exports {

class Reserved {
 public:
  static std::shared_ptr<const void> add(const std::shared_ptr<Reserved>& self,
                                         const catalog::FileIdentity& file) {
    const std::pair key(file.device, file.inode);
    const std::scoped_lock lock(self->mutex_);
    self->files_.insert(key);
    return {self.get(), [self, key](const void*) {
              const std::scoped_lock unlock(self->mutex_);
              self->files_.erase(self->files_.find(key));
            }};
  }
  bool contains(const catalog::FileIdentity& file) const {
    const std::scoped_lock lock(mutex_);
    return files_.contains({file.device, file.inode});
  }

 private:
  mutable std::mutex mutex_;
  std::multiset<std::pair<uint64_t, uint64_t>> files_;  // device and inode
};

}  // namespace sluice::exports
