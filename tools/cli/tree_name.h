// A directory that is sent or fetched to a name that is not there yet gets that name, as by scp -r and cp -r.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/client/client.h"
#include "tools/cli/transfer_flags.h"

namespace sluice::cli {

// "DIR" to "NODE:THERE/NEW", or to "THERE/NEW" of this host: asks whether NEW is there. If it is not, and
// what it is to stand in is, the request becomes "DIR/" to NEW, which the destination makes, with the mode
// and times of DIR. A node that lets nobody look is left to say itself what is wrong.
void name_tree(api::Client& client, api::TransferRequest* request);

}  // namespace sluice::cli
