// What a node signs with its key, and whoever has its certificate can check: Ed25519 (RFC 8032).
//
// The same key answers for TLS 1.3, whose signed texts begin with 64 blanks (RFC 8446, 4.4.3): no text that
// is signed here may begin so, and each begins with what it is. Cold; any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/evp.h>

#include <string>
#include <string_view>

#include "control/identity/identity.h"

namespace sluice::identity {

// In base64. kUsage: a text that begins with a blank.
Result<std::string> sign(const Identity& self, std::string_view text);
Result<std::string> sign_with(EVP_PKEY* key, std::string_view text);
// kIntegrity: it is not what the key of this certificate signed. kConfiguration: no certificate.
Status check_signature(std::string_view certificate_pem, std::string_view text, std::string_view signature);

}  // namespace sluice::identity
