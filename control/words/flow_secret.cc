// SPDX-License-Identifier: Apache-2.0
#include "control/words/flow_secret.h"

#include <charconv>

#include "dataplane/core/wire.h"

namespace sluice::transfer {

std::optional<std::array<uint8_t, 28>> flow_secret_context(std::string_view session_id, uint64_t flow_id,
                                                           LaneId lane) {
  std::array<uint8_t, 28> context;
  if (session_id.size() != 32) return std::nullopt;
  for (size_t i = 0; i < 16; ++i) {
    const char* const digits = session_id.data() + 2 * i;
    if (std::from_chars(digits, digits + 2, context[i], 16).ptr != digits + 2) return std::nullopt;
  }
  wire::store_be64(&context[16], flow_id);
  wire::store_be32(&context[24], lane.value());
  return context;
}

}  // namespace sluice::transfer
