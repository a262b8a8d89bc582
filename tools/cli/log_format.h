// Records of a session's network log, and the levels of the daemons' own logs, as people read them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "control/proto/log.pb.h"

namespace sluice::cli {

std::string log_text(const api::LogRecord& record);  // with a line's end

// Of the daemons' own logs.
std::string levels_text(const api::ComponentLevels& levels);

}  // namespace sluice::cli
