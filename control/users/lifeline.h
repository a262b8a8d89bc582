// Ends all waiting of several channels at once: Channel::give_up_with(watched()).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <mutex>

#include "dataplane/base/unique_fd.h"

namespace sluice::users {

// A pipe, whose end hangs up once nobody wants to wait any more.
class Lifeline {
 public:
  Lifeline() {
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) != 0) return;
    watched_.reset(ends[0]);
    held_.reset(ends[1]);
  }
  int watched() const { return watched_.get(); }
  void cut() {  // any thread
    const std::scoped_lock lock(mutex_);
    held_.reset();
  }

 private:
  UniqueFd watched_;
  std::mutex mutex_;
  UniqueFd held_;
};

}  // namespace sluice::users
