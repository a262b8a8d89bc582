// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dpdk/privileges.h"

#include <cap-ng.h>

namespace sluice::dpdk {

bool may_open_raw_sockets() {
  return capng_get_caps_process() == 0 && capng_have_capability(CAPNG_EFFECTIVE, CAP_NET_RAW) == 1;
}

}  // namespace sluice::dpdk
