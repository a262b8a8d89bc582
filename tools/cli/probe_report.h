// What a session tells a probe, and what the probe tells of all that it has found.
//
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "control/proto/api.pb.h"
#include "tools/cli/probe_state.h"

namespace sluice::cli {

inline constexpr const char* kTransfers = "transfers";
inline constexpr const char* kPackets = "packets";

// One transfer of a file with this digest has ended, well or with digests that differ. What is wrong with it;
// empty: nothing.
std::string take_transfer(const std::string& made, const api::Session& session, int64_t unix_ns,
                          ProbeState* state);
// A session has had its datagrams reflected, to the end. How many of them were wrong.
uint64_t take_echoes(const api::Session& session, int64_t unix_ns, ProbeState* state);

std::string probe_text(const ProbeState& state, uint64_t asked);
api::Json probe_json(const ProbeState& state, uint64_t asked);  // sluice.integrity.v1
// "12 of 100000 transfers, none wrong"
std::string probe_progress(const ProbeState& state, uint64_t asked, uint64_t under_way);

}  // namespace sluice::cli
