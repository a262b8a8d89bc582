// Dataplanes that start at the same time take turns at the hugepages: what one has counted as free, another
// could have taken before it does.
//
// Held from counting until they are taken. It is a lock on a directory of the kernel, so it ends with its
// holder, however that ends, and leaves nothing. Whoever holds it for too long is not waited for.
// Cold; any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <sys/file.h>

#include <chrono>
#include <string>
#include <thread>

#include "dataplane/base/unique_fd.h"

namespace sluice::dpdk {

class HugepageTurn {
 public:
  static constexpr const char* kDirectory = "/sys/kernel/mm/hugepages";
  static constexpr std::chrono::milliseconds kWait{10'000};

  explicit HugepageTurn(std::chrono::milliseconds limit = kWait, const std::string& directory = kDirectory)
      : directory_(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    constexpr auto kLook = std::chrono::milliseconds(5);
    const auto end = std::chrono::steady_clock::now() + limit;
    while (directory_ && !(held_ = ::flock(directory_.get(), LOCK_EX | LOCK_NB) == 0) &&
           std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(kLook);
    }
  }
  bool held() const { return held_; }

 private:
  UniqueFd directory_;
  bool held_ = false;
};

}  // namespace sluice::dpdk
