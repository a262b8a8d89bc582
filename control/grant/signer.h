// Finds the node whose key has signed a grant or a move.
//
// Cold; any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "dataplane/base/error.h"

namespace sluice::grant {

struct SignedText {
  std::string text;  // with its purpose before it
  const std::string& signature;
  const std::string& certificate_pem;
};

// The fingerprint of the key. `what`: for the message of kIntegrity, its signature is not of that key. `none`
// makes the error of what has no certificate or no key.
Result<std::string> signer_of(const SignedText& shown, std::string_view what,
                              Error (*none)(std::string_view why));

}  // namespace sluice::grant
