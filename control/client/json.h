// The JSON of what a node answers, as `--json` prints it. Whole objects name their kind and version in
// "schema". Names of members carry their unit. Within a version members are added, but never renamed or
// removed (docs/REFERENCE.md, "JSON").
//
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "control/proto/api.pb.h"
#include "control/proto/log.pb.h"
#include "dataplane/base/error.h"

namespace sluice::api {

using Json = nlohmann::ordered_json;

Json session_json(const Session& session);           // sluice.session.v1
Json sessions_json(const ListSessionsReply& reply);  // sluice.sessions.v1
Json counters_json(const CountersReply& reply);      // sluice.counters.v1
Json verify_json(const std::vector<VerifyProgress>& verdicts);
Json live_json(const NodeReply& reply);  // the "live" part of sluice.node.v1
Json bottleneck_json(const Bottleneck& bottleneck);
Json export_json(const std::string& id, const std::string& to, const std::string& file, uint64_t bytes);
Json error_json(const Error& error);         // sluice.error.v1
Json event_json(const SessionEvent& event);  // sluice.event.v1

// A name at another node; `path` is what is shown of the entry's own. A name that is not UTF-8 has U+FFFD in
// "path", and all of its bytes as hex digits in "path_bytes".
Json name_json(const NameEntry& entry, const std::string& path);
// An entry of sluice.preview.v1. `size_bytes` counts for a file alone.
Json preview_json(const std::string& path, NameEntry::Type type, uint64_t size_bytes);
std::string_view type_name(NameEntry::Type type);  // "file", "directory", "link", ...

// A session's network log.
Json log_json(const std::string& session, const LogRecord& record);  // sluice.log.v1
Json log_level_json(const SessionLogLevel& level);                   // sluice.session_log_level.v1
// The daemons log by component, each at its own level.
Json levels_json(const ComponentLevels& levels);
Json log_levels_json(const ComponentLevels& levels);  // sluice.log_levels.v1

// One line with its newline; text that is not UTF-8 gets replacement characters.
std::string to_line(const Json& object);

}  // namespace sluice::api
