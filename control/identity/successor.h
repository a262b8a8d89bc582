// A key that follows another: its certificate carries a statement that the former key signed, so that whoever
// pinned the former one can tell that the same owner made the new one (docs/WIRE.md, 2.1).
//
// The statement holds three things: which key it was, which it becomes, and until when both count. A thief of
// the former key can sign one as well: so to take a new key for good is an operator's decision. Cold; any
// thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "control/identity/certificate.h"

namespace sluice::identity {

struct Statement {
  std::string former_fingerprint;
  int64_t until_unix_s = 0;  // the former key counts until then
  std::string signature;     // in base64, by the former key
};

// What is signed: `fingerprint` is that of the new key.
std::string statement_text(const std::string& former_fingerprint, const std::string& fingerprint,
                           int64_t until_unix_s);
// To a certificate that is not signed yet.
bool add_succession(X509* certificate, const Succession& succession);
// What the certificate carries; nothing: none, or one that is not well formed. Nobody has checked it.
std::optional<Statement> statement_in(X509* certificate);
// Whether the key of `former_pem` signed what `certificate` carries.
bool follows(X509* certificate, const std::string& former_pem);

}  // namespace sluice::identity
