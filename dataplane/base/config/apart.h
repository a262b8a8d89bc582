// No export may give away the node itself. Looks at the node's own directories.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dataplane/base/config/config.h"

namespace sluice::config {

enum class Paths : uint8_t {
  kAsWritten,  // no export is looked at: the path to it may lead over a file system that hangs
  kFollowed,   // through links
};

// kConfiguration: an export holds the node's directory or its state (private key, pins, journal), or lies
// where keys, pins or sockets are.
Status check_apart(const Node& node, Paths exports);

}  // namespace sluice::config
