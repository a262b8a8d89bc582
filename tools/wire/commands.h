// What can be asked of a running emulator: one JSON object in, one out (docs/WIRE-EMULATOR.md).
//
// Cold, main thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "tools/wire/engine.h"

namespace sluice::emulator {

// Settings of both directions, from the object of the settings file: "a_to_b", "b_to_a", "both" (first).
Result<std::array<Settings, kDirections>> settings_of(const Json& file);

class Commands {
 public:
  // `ports` describes the devices, for `counters`.
  Commands(Engine& engine, std::function<Json()> ports) : engine_(engine), ports_(std::move(ports)) {}

  // The answer to one line, without its end.
  std::string answer(std::string_view line);
  Json counters();

 private:
  Result<Json> serve(const Json& request);
  Result<Json> set(const Json& request, const std::array<bool, kDirections>& wanted);
  Result<Json> blackhole(const Json& request, const std::array<bool, kDirections>& wanted);
  Json get();

  Engine& engine_;
  const std::function<Json()> ports_;
};

}  // namespace sluice::emulator
