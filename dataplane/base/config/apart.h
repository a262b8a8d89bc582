// No export may give away the node itself. Looks at the file system.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dataplane/base/config/config.h"

namespace sluice::config {

// kConfiguration: an export holds the node's directory or its state (private key, pins, journal), or lies
// where these are. Links are followed; what is not there yet is judged by its name.
Status check_apart(const Node& node);

}  // namespace sluice::config
