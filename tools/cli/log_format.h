// Records of a session's network log: as an object for a program, and as a line for people.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "control/proto/log.pb.h"
#include "tools/cli/json.h"

namespace sluice::cli {

Json log_json(const std::string& session, const api::LogRecord& record);
std::string log_text(const api::LogRecord& record);  // with a line's end

// Of the daemons' own logs.
Json levels_json(const api::ComponentLevels& levels);
std::string levels_text(const api::ComponentLevels& levels);

}  // namespace sluice::cli
