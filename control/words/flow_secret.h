// What a flow's keys are made of: 32 bytes that both ends of a control connection have (docs/WIRE.md 1.3).
//
// Pure. The performer of OpenFlow asks the leg's stream for the secret, hands it to the dataplane and keeps
// nothing: a secret wipes itself.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "dataplane/base/number.h"

namespace sluice::transfer {

inline constexpr std::string_view kFlowSecretLabel = "EXPORTER-sluice-flow-v1";

struct FlowSecret {
  FlowSecret() = default;
  ~FlowSecret() { explicit_bzero(bytes.data(), bytes.size()); }
  FlowSecret(const FlowSecret&) = default;
  FlowSecret& operator=(const FlowSecret&) = default;
  std::array<uint8_t, 32> bytes{};
};

// The 16 bytes of the session's id, flow_id, lane. Nothing: `session_id` is no id.
std::optional<std::array<uint8_t, 28>> flow_secret_context(std::string_view session_id, uint64_t flow_id,
                                                           LaneId lane);

}  // namespace sluice::transfer
