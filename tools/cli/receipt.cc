// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/receipt.h"

#include "control/identity/signature.h"

namespace sluice::cli {
namespace {

using receipt::kPurpose;
using receipt::kSchema;

Error no_receipt() {
  return {ErrorCode::kUsage, "this is no receipt; give what 'sluice receipt ID' has printed, as it is"};
}

}  // namespace

Result<CheckedReceipt> check_receipt(std::string_view text) {
  const api::Json given = api::Json::parse(text, nullptr, false);
  if (!given.is_object() || given.value("schema", api::Json()) != kSchema) return no_receipt();
  for (const char* key : {"statement", "signature", "certificate"}) {
    if (!given.contains(key) || !given[key].is_string()) return no_receipt();
  }
  const auto statement = given["statement"].get<std::string>();
  const auto certificate = given["certificate"].get<std::string>();
  const Result<std::string> signer = identity::fingerprint_of_pem(certificate);
  if (!signer) return no_receipt();
  if (Status status = identity::check_signature(certificate, std::string(kPurpose) + statement,
                                                given["signature"].get<std::string>());
      !status)
    return Error{status.error().code, "the receipt was changed: " + status.error().message};
  api::Json said = api::Json::parse(statement, nullptr, false);
  const bool fits = said.is_object() && said.contains("node") && said["node"].is_object() &&
                    said["node"].value("fingerprint", api::Json()) == *signer;
  if (!fits)
    return Error{ErrorCode::kIntegrity,
                 "the receipt was signed by another key than that of the node it names"};
  return CheckedReceipt{.statement = std::move(said), .signer = *signer};
}

}  // namespace sluice::cli
