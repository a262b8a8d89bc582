// See commands.h.
// SPDX-License-Identifier: Apache-2.0
#include "tools/wire/commands.h"

#include <fmt/format.h>

#include <map>
#include <set>

namespace sluice::emulator {
namespace {

constexpr double kBlackholeSecondsMax = 86400;

Error wrong(std::string message) { return {ErrorCode::kUsage, std::move(message)}; }

Result<std::array<bool, kDirections>> directions_of(const Json& request) {
  const auto found = request.find("direction");
  if (found == request.end() || *found == "both") return std::array{true, true};
  for (size_t i = 0; i < kDirections; ++i) {
    if (*found == kDirectionNames[i]) return std::array{i == 0, i == 1};
  }
  return wrong("direction: expected \"a_to_b\", \"b_to_a\" or \"both\"");
}

Status only_keys(const Json& request, const std::set<std::string>& known) {
  for (const auto& [key, value] : request.items()) {
    if (!known.contains(key)) return wrong(fmt::format("{}: is no key of this command", key));
  }
  return {};
}

}  // namespace

Result<std::array<Settings, kDirections>> settings_of(const Json& file) {
  std::array<Settings, kDirections> settings;
  if (!file.is_object()) return wrong("expected an object");
  for (const char* const key : {"both", kDirectionNames[0], kDirectionNames[1]}) {
    const auto found = file.find(key);
    if (found == file.end()) continue;
    for (size_t i = 0; i < kDirections; ++i) {
      if (key != kDirectionNames[i] && std::string_view(key) != "both") continue;
      auto next = changed(settings[i], *found);
      if (!next) return wrong(fmt::format("{}.{}", key, next.error().message));
      settings[i] = std::move(*next);
    }
  }
  if (Status status = only_keys(file, {"both", kDirectionNames[0], kDirectionNames[1]}); !status) {
    return status.error();
  }
  return settings;
}

std::string Commands::answer(std::string_view line) {
  const Json request = Json::parse(line, nullptr, false);
  Result<Json> reply = request.is_object() ? serve(request) : wrong("expected one JSON object per line");
  Json json;
  json["ok"] = static_cast<bool>(reply);
  if (reply) {
    json.update(*reply);
  } else {
    json["error"] = reply.error().message;
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Json> Commands::serve(const Json& request) {
  static const std::map<std::string, std::set<std::string>> kKeys{
      {"get", {"command"}},
      {"counters", {"command"}},
      {"set", {"command", "direction", "settings"}},
      {"blackhole", {"command", "direction", "seconds"}}};
  const auto named = request.find("command");
  const std::string command =
      named != request.end() && named->is_string() ? named->get<std::string>() : std::string();
  const auto known = kKeys.find(command);
  if (known == kKeys.end()) return wrong("command: expected \"set\", \"get\", \"counters\" or \"blackhole\"");
  if (Status status = only_keys(request, known->second); !status) return status.error();
  const auto wanted = directions_of(request);
  if (!wanted) return wanted.error();
  if (command == "set") return set(request, *wanted);
  if (command == "blackhole") return blackhole(request, *wanted);
  return command == "get" ? get() : counters();
}

Result<Json> Commands::set(const Json& request, const std::array<bool, kDirections>& wanted) {
  const auto changes = request.find("settings");
  if (changes == request.end()) return wrong("settings: is missing");
  std::array<Settings, kDirections> settings;
  engine_.inside([&](uint64_t) {
    for (size_t i = 0; i < kDirections; ++i) settings[i] = engine_.direction(i).path().settings();
  });
  // All or nothing.
  for (size_t i = 0; i < kDirections; ++i) {
    if (!wanted[i]) continue;
    auto next = changed(settings[i], *changes);
    if (!next) return next.error();
    settings[i] = std::move(*next);
  }
  engine_.inside([&](uint64_t) {
    for (size_t i = 0; i < kDirections; ++i) {
      if (wanted[i]) engine_.direction(i).set(settings[i]);
    }
  });
  return Json::object();
}

Result<Json> Commands::blackhole(const Json& request, const std::array<bool, kDirections>& wanted) {
  const auto found = request.find("seconds");
  const double seconds = found != request.end() && found->is_number() ? found->get<double>() : -1;
  if (!(seconds >= 0 && seconds <= kBlackholeSecondsMax)) {
    return wrong(fmt::format("seconds: expected a number from 0 to {}", kBlackholeSecondsMax));
  }
  engine_.inside([&](uint64_t now_ns) {
    for (size_t i = 0; i < kDirections; ++i) {
      if (wanted[i]) {
        engine_.direction(i).blackhole_until(now_ns + static_cast<uint64_t>(seconds * 1e9));
      }
    }
  });
  return Json::object();
}

Json Commands::get() {
  Json json;
  engine_.inside([&](uint64_t) {
    for (size_t i = 0; i < kDirections; ++i) {
      json["settings"][kDirectionNames[i]] = to_json(engine_.direction(i).path().settings());
    }
  });
  return json;
}

Json Commands::counters() {
  Json json;
  engine_.inside([&](uint64_t now_ns) {
    json["now_ns"] = now_ns;
    for (size_t i = 0; i < kDirections; ++i) {
      json["counters"][kDirectionNames[i]] = counters_json(engine_.direction(i), now_ns);
    }
  });
  json["ports"] = ports_();
  return json;
}

}  // namespace sluice::emulator
