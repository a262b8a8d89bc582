// Files of this host that stand outside the node's exports: whoever types a command may name them, and a
// process of his own opens them for the session (control/users/for_caller.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "control/client/client.h"
#include "tools/cli/app.h"
#include "tools/cli/transfer_flags.h"

namespace sluice::cli {

// As api::Client::begin, which this asks first: where all that the request names of this host stands outside
// the exports, it starts that process. It makes the directories itself that --mkdir asks for there.
Result<std::string> begin_transfer(const Context& context, api::Client& client,
                                   const api::TransferRequest& request);

// As api::Client::preview, likewise.
Status preview_transfer(const Context& context, api::Client& client, const api::SendRequest& request,
                        const std::function<void(const api::PreviewReply&)>& on_part);

// The same for a source that was made for the session, outside the exports: the process removes it at the
// end, and its directory.
Result<std::string> begin_with_spool(const Context& context, api::Client& client, api::SendRequest request);

// Brings that process back for a session that has one and whose own has gone. It is no error where nothing of
// it is needed.
Status bring_back_files(const Context& context, const api::Session& session);

}  // namespace sluice::cli
