// See json.h: logs of sessions and of the daemons.
// SPDX-License-Identifier: Apache-2.0
#include "control/client/json.h"

namespace sluice::api {

Json log_json(const std::string& session, const LogRecord& r) {
  Json out = {{"schema", "sluice.log.v1"},    {"session", session}, {"unix_ns", r.unix_ns()},
              {"session_ns", r.session_ns()}, {"lane", r.lane()},   {"kind", r.kind()}};
  if (r.has_tx_seq()) out["tx_seq"] = r.tx_seq();
  if (r.has_object()) out["object"] = r.object();
  if (r.has_offset()) out["offset"] = r.offset();
  if (r.has_length()) out["length_bytes"] = r.length();
  if (r.has_count()) out["count"] = r.count();
  if (r.has_rate_bps()) out["rate_bps"] = r.rate_bps();
  if (r.has_credit_extents()) out["credit_extents"] = r.credit_extents();
  if (r.has_gaps()) out["gaps"] = r.gaps();
  if (r.has_error_number()) out["errno"] = r.error_number();
  return out;
}

Json log_level_json(const SessionLogLevel& level) {
  return {{"schema", "sluice.session_log_level.v1"}, {"session", level.id()}, {"level", level.level()}};
}

Json levels_json(const ComponentLevels& levels) {
  Json out = Json::object();
  for (const ComponentLevel& each : levels.levels()) out[each.component()] = each.level();
  return out;
}

Json log_levels_json(const ComponentLevels& levels) {
  return {{"schema", "sluice.log_levels.v1"}, {"levels", levels_json(levels)}};
}

}  // namespace sluice::api
