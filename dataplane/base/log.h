// Who logs: each component of a daemon has a logger of its own, whose level can be changed while it runs.
//
// Any thread. Made by daemon::start_log; in a test, which has none, all is the default logger's. Whoever
// includes this links spdlog.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace sluice::log {

inline constexpr const char* kControl = "control";      // all of sluice-control that is none of these
inline constexpr const char* kSession = "session";      // what a session does
inline constexpr const char* kPeer = "peer";            // connections of peers, and what they ask for
inline constexpr const char* kBoard = "board";          // control's way to the dataplane
inline constexpr const char* kDataplane = "dataplane";  // all of sluice-dataplane
inline constexpr std::array kOfControl = {kControl, kSession, kPeer, kBoard};

// In spdlog's order.
inline constexpr std::array kLevels = {"trace", "debug", "info", "warn", "error", "critical", "off"};

inline std::shared_ptr<spdlog::logger> of(const char* component) {
  const auto found = spdlog::get(component);
  return found ? found : spdlog::default_logger();
}

inline std::optional<uint32_t> level_of(std::string_view name) {
  const auto* const found = std::find(kLevels.begin(), kLevels.end(), name);
  if (found == kLevels.end()) return std::nullopt;
  return static_cast<uint32_t>(found - kLevels.begin());
}
inline const char* level_name(uint64_t level) {
  return kLevels[std::min<uint64_t>(level, kLevels.size() - 1)];
}
inline uint32_t level(const char* component) { return static_cast<uint32_t>(of(component)->level()); }
inline void set_level(const char* component, uint32_t level) {
  of(component)->set_level(
      static_cast<spdlog::level::level_enum>(std::min<size_t>(level, kLevels.size() - 1)));
}

}  // namespace sluice::log
