// The specification handshake: how two nodes will move data (MCDTP 3.1.1.1, the smaller of each).
//
// Pure: messages in, an agreement or a reason out. Everything that comes from the peer is checked.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "control/proto/peer.pb.h"
#include "control/session/options.h"
#include "dataplane/base/error.h"
#include "dataplane/board/board.h"

namespace sluice::control {

inline constexpr uint32_t kProtocolVersion = 2;

// What this node brings: from its configuration and its port.
struct Abilities {
  board::PortInfo port{};
  bool udp_checksum_always = false;
};

// What both ends use from here on.
struct Agreement {
  uint32_t lanes = 0;
  uint32_t chunk_bytes = 0;
  uint32_t extent_bytes = 0;
  uint64_t partition_bytes = 0;
  wire::CrcKind crc_kind = wire::CrcKind::kCrc64Ecma;
  uint64_t rate_bps = 0;
  bool udp_checksum = false;
  bool discard = false;
  std::array<uint8_t, 16> local_ip{};  // IPv4 as ::ffff:a.b.c.d
  std::array<uint8_t, 16> peer_ip{};
  std::vector<uint16_t> peer_ports;  // one per lane
};

// Initiator: its wishes, one UDP port per lane that it offers.
Result<peer::Specification> make_specification(const Abilities& abilities, const Options& options,
                                               bool source, bool discard, const std::vector<uint16_t>& ports);
// The other node: how many lanes it will need ports for.
Result<uint32_t> lanes_for(const peer::Specification& specification, uint32_t lanes_max);
// The other node: the answer, with as many ports as lanes.
Result<peer::SpecificationSet> answer(const peer::Specification& specification, const Abilities& abilities,
                                      uint64_t partition_bytes, const std::vector<uint16_t>& ports);
// Both: what specification and answer mean here. The initiator so checks that the answer keeps to what
// it offered.
Result<Agreement> agree(const peer::Specification& specification, const peer::SpecificationSet& set,
                        const Abilities& abilities, bool initiator);

// kIncompatible when the peer's Hello shares no version with this node, or has no session id.
Status check_hello(const peer::Hello& hello);

}  // namespace sluice::control
