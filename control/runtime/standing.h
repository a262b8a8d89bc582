// Who this node is and whom it trusts, looked up anew for each call: what an operator changes counts at once
// (control/identity/standing_files.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <memory>

#include "control/runtime/services.h"

namespace sluice::runtime {

// Looks at the files on the pool. On the loop; what is wrong with a file is logged once.
asio::awaitable<Result<identity::Standing>> standing_now(std::shared_ptr<Services> services);

// A pinned peer offers another key in place of its own: logged once, and kept until somebody looks.
void remember_offer(Services& services, identity::Offer offer);

}  // namespace sluice::runtime
