// The specification handshake: how two nodes will move data (MCDTP, section 3.1.1.1: the smaller of each).
//
// Pure: messages in, an agreement or a reason out. Everything that comes from the peer is checked.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "control/words/messages.h"
#include "control/words/terms.h"
#include "dataplane/base/error.h"

namespace sluice::transfer {

inline constexpr uint32_t kExtentBytesMin = 64U << 10;

// What this node brings: from its configuration and its port.
struct Abilities {
  board::PortInfo port{};
  bool udp_checksum_always = false;
  bool calls_only = false;       // nothing reaches it but answers
  bool file_part = false;        // the session is about a part of a file, as this node wishes
  bool several_sources = false;  // a destination has them: each sends a part
  uint32_t digests_unanswered = kDigestsUnansweredMax;         // as a source; 0: it does not say
  wire::Protection protection = wire::Protection::kAes128Gcm;  // the least for data
  // At a source: what the path to the peer carries, and which size was measured to bring most; 0: not known.
  struct Path {
    uint32_t carried_bytes = 0;
    uint32_t best_bytes = 0;
  };
  Path ip4;
  Path ip6;
};

// Initiator: its wishes, one UDP port per lane that it offers.
Result<Specification> make_specification(const Abilities& abilities, const Options& options, Role role,
                                         bool discard, const std::vector<uint16_t>& ports);
// The other node: how many lanes it will need ports for.
Result<uint32_t> lanes_for(const Specification& specification, uint32_t lanes_max);
// The other node: the answer, with as many ports as lanes.
Result<SpecificationSet> answer(const Specification& specification, const Abilities& abilities,
                                uint64_t partition_bytes, const std::vector<uint16_t>& ports);
// Both: what specification and answer mean here. The initiator so checks that the answer keeps to what it
// offered.
Result<Agreement> agree(const Specification& specification, const SpecificationSet& set,
                        const Abilities& abilities, bool initiator);

Hello make_hello(const std::string& session_id);
// kIncompatible when the peer's Hello shares no version with this node, or has no session id.
Status check_hello(const Hello& hello);

}  // namespace sluice::transfer
