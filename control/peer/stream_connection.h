// Makes a Connection of a stream whose handshake is done.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "control/peer/connection.h"

namespace sluice::peer {

class Stream;
std::unique_ptr<Connection> make_connection(std::shared_ptr<Stream> stream, identity::Peer peer);

}  // namespace sluice::peer
