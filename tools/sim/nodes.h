// The nodes of a simulated world, and how others call them.
//
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace sluice::sim {

inline constexpr uint32_t kSource = 0;
inline constexpr uint32_t kDestination = 1;
inline constexpr uint32_t kNodesMax = 4;  // 2 and 3: further nodes that have the files of the source

constexpr bool is_source(uint32_t node) { return node != kDestination; }
// Which of the two ends it is, where a plan has something for each.
constexpr uint32_t side_of(uint32_t node) { return is_source(node) ? kSource : kDestination; }

inline constexpr std::array<const char*, kNodesMax> kNodeNames = {"src", "dst", "beta", "gamma"};
constexpr const char* node_name(uint32_t node) { return kNodeNames[node]; }
constexpr uint32_t node_named(std::string_view name) {
  uint32_t node = 0;
  while (node + 1 < kNodesMax && name != kNodeNames[node]) ++node;
  return node;
}

}  // namespace sluice::sim
