// A receipt: what a node says of a session that has succeeded, signed with its key, for a third person.
//
// One JSON object: "statement" is a text (JSON itself) whose very bytes were signed, so that nobody has to
// write JSON in one certain way to check it. docs/REFERENCE.md, "sluice receipt", tells how.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "control/client/json.h"
#include "control/identity/identity.h"
#include "control/proto/api.pb.h"
#include "dataplane/base/error.h"

namespace sluice::cli {

inline constexpr size_t kReceiptBytesMax = 64U << 20;

// kUsage: it has not succeeded. kConfiguration: a key is younger than the session, so that nobody can say
// that it was of this node, or of this peer.
Result<api::Json> make_receipt(const std::filesystem::path& node_directory, const api::Session& session);

struct CheckedReceipt {
  api::Json statement;
  std::string signer;  // fingerprint of the key
};
// kIntegrity: it was changed, or signed by another than the node that it names. kUsage: it is no receipt.
Result<CheckedReceipt> check_receipt(std::string_view text);

}  // namespace sluice::cli
