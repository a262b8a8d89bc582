// A session that moves to another node: its bundle, read from the first node and given to the second.
//
// A call blocks; any thread. A failure is why the call failed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "control/client/call.h"

namespace sluice::api {

// Empty where the session was withdrawn.
std::optional<Failure> export_bundle(Control::Stub& stub, const ExportRequest& request, std::string* bundle);
std::optional<Failure> import_bundle(Control::Stub& stub, const std::string& bundle, Session* session);

}  // namespace sluice::api
