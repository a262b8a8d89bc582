// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace sluice::base {

void check_failed(const char* file, int line, const char* condition, const char* why) {
  std::fprintf(stderr, "%s:%d: CHECK failed: %s (%s)\n", file, line, condition, why);
  std::abort();
}

}  // namespace sluice::base
