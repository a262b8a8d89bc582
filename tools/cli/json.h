// What `--json` prints: one object, with a "schema" that names its kind and version. Field names carry their
// unit. Within a version, fields are added but never renamed or removed (docs/REFERENCE.md, "JSON"). Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "control/proto/api.pb.h"
#include "dataplane/base/error.h"

namespace sluice::cli {

using Json = nlohmann::ordered_json;

Json session_json(const api::Session& session);           // sluice.session.v1
Json sessions_json(const api::ListSessionsReply& reply);  // sluice.sessions.v1
Json counters_json(const api::CountersReply& reply);      // sluice.counters.v1
Json verify_json(const std::vector<api::VerifyProgress>& verdicts);
Json live_json(const api::NodeReply& reply);      // the "live" part of sluice.node.v1
Json error_json(const Error& error);              // sluice.error.v1
Json event_json(const api::SessionEvent& event);  // sluice.event.v1
// One line with its newline; text that is not UTF-8 gets replacement characters.
std::string to_line(const Json& object);

}  // namespace sluice::cli
