// Where this host has the data port's device: whether it can be opened there, and whether what was opened is
// gone.
//
// Of cards (their folder in /sys) and interfaces of the kernel (their index). Anything else is always there.
// A link that is down is not a device that is gone. Cold; of one thread. Cheap: one or two system calls,
// which a dataplane may make after it has given up its rights.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "dataplane/base/unique_fd.h"
#include "dataplane/dpdk/device_args.h"

namespace sluice::dpdk {

class DevicePlace {
 public:
  explicit DevicePlace(const Device& device, const std::filesystem::path& root = "/");

  // Why it cannot be opened now, for people; empty: it can, as far as can be seen from outside.
  std::string missing() const;
  // It has been opened: from now on `gone` compares with what is there.
  void opened();
  // Why what was opened can carry nothing any more; empty: it may. An interface that was made anew under its
  // name is another one.
  std::string gone() const;

 private:
  bool is_interface() const { return !interface_.empty(); }
  // Of the interface, and of the link from the card to its driver, by which one that was made anew is known.
  // Nothing: `*error` says why.
  std::optional<uint64_t> index(int* error) const;
  std::optional<uint64_t> binding(int* error) const;
  std::string driver() const;  // of the card; not for a dataplane that has given up its rights

  std::string name_;
  std::string interface_;
  std::filesystem::path card_;  // its folder; empty: no card
  UniqueFd asking_;
  uint64_t opened_index_ = 0;
  uint64_t opened_binding_ = 0;
  std::string opened_driver_;
};

}  // namespace sluice::dpdk
