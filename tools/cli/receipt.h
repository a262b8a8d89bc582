// A receipt that somebody was given (control/receipt/receipt.h): is it what a node has signed, and which?
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "control/client/json.h"
#include "control/identity/identity.h"
#include "control/receipt/receipt.h"
#include "dataplane/base/error.h"

namespace sluice::cli {

inline constexpr size_t kReceiptBytesMax = 64U << 20;

using receipt::make_receipt;

struct CheckedReceipt {
  api::Json statement;
  std::string signer;  // fingerprint of the key
};
// kIntegrity: it was changed, or signed by another than the node that it names. kUsage: it is no receipt.
Result<CheckedReceipt> check_receipt(std::string_view text);

}  // namespace sluice::cli
