// When to tell of certificates that are, or will soon be, out of date: from 30 days before on, once a day.
//
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "control/identity/authority.h"

namespace sluice::node {

class ExpiryWarnings {
 public:
  // One line for each of which is to be told now.
  std::vector<std::string> due(const std::vector<identity::Expiry>& all, int64_t now_unix_s);

 private:
  std::map<std::string, int64_t> told_unix_s_;  // by kind and name; of those that are there
};

}  // namespace sluice::node
