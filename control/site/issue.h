// Certificates of an authority, and its list of what it has revoked: the OpenSSL part of a site. Cold; any
// thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "control/identity/certificate.h"

namespace sluice::site {

// A new Ed25519 key and its certificate of an authority, signed by itself.
Result<identity::KeyPair> make_authority(const std::string& name, int64_t lifetime_s);

struct Issuer {
  X509* certificate = nullptr;
  EVP_PKEY* key = nullptr;
};
struct Subject {
  EVP_PKEY* key = nullptr;  // its public half counts
  std::string name;         // the common name, for people
  std::string dns_name;     // the one that counts
  int64_t lifetime_s = 0;   // from now; it ends with the issuer's own in any case
};
// In PEM. kConfiguration: a key that is too weak.
Result<std::string> issue(const Issuer& issuer, const Subject& subject);

// A list (CRL, PEM) without an end: it counts until another takes its place.
Result<std::string> make_list(const Issuer& issuer, const std::vector<identity::CertificatePointer>& revoked);

}  // namespace sluice::site
