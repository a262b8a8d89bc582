// What is asked and told, as messages of the API and as the library's own types.
//
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/proto/api.pb.h"
#include "tools/cpp/include/sluice/client.h"

namespace sluice::client {

// Throws Error (2, usage) at a rule that is none.
api::TransferOptions message_of(const Options& options);
Status status_of(const api::Session& session);
NodeStatus status_of(const api::NodeReply& node);

}  // namespace sluice::client
