// A receipt as a list of digests: `get --manifest receipt.json`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/error.h"
#include "tools/cli/app.h"
#include "tools/manifest/list.h"

namespace sluice::cli {

// Who this key is to the node here; empty: nobody knows, or there is no node.
std::string signer_known_as(const Context& context, const std::string& signer);

// No list has such a beginning.
bool looks_like_receipt(std::string_view text);

// The files of the receipt that have digests, by the names under which they are beneath one of `sources`, or
// by the last part of their names. kIntegrity, kUsage: check_receipt(). kPeerUntrusted: nobody here knows who
// signed it.
Result<std::vector<manifest::Entry>> entries_of_receipt(const Context& context, std::string_view text,
                                                        const std::vector<std::string>& sources);

}  // namespace sluice::cli
