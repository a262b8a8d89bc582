// The addresses of [port] in node.toml as the packet code wants them.
//
// Cold, pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dataplane/base/config/config.h"
#include "dataplane/base/error.h"
#include "dataplane/net/neighbours.h"

namespace sluice::net {

// kConfiguration names the key whose value is no address, or of the wrong family.
Result<HostAddresses> host_addresses(const config::Node& node, const uint8_t* mac);

}  // namespace sluice::net
