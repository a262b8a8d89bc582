// Keys and self-signed certificates: the OpenSSL part of an identity. Cold; any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string>
#include <string_view>

#include "dataplane/base/error.h"

namespace sluice::identity {

struct OpensslDeleter {
  void operator()(EVP_PKEY* p) const { EVP_PKEY_free(p); }
  void operator()(X509* p) const { X509_free(p); }
  void operator()(BIO* p) const { BIO_free_all(p); }
};
using KeyPointer = std::unique_ptr<EVP_PKEY, OpensslDeleter>;
using CertificatePointer = std::unique_ptr<X509, OpensslDeleter>;
using BioPointer = std::unique_ptr<BIO, OpensslDeleter>;

struct KeyPair {
  std::string key_pem;
  std::string certificate_pem;
};

// A new Ed25519 key and its certificate: CN = name, no end of validity (peers are pinned, not dated).
Result<KeyPair> make_key_pair(const std::string& name);
// The first certificate in the text; whatever follows it is ignored.
Result<CertificatePointer> parse_certificate(std::string_view pem);
Result<KeyPointer> parse_key(std::string_view pem);
Result<std::string> to_pem(X509* certificate);
// SHA-256 over the public key (SPKI, DER) as 64 lower-case hex digits.
Result<std::string> fingerprint_of(X509* certificate);
// The subject's common name; empty when there is none.
std::string common_name(X509* certificate);
// The oldest queued OpenSSL error as words; empties the queue.
std::string openssl_reason();

}  // namespace sluice::identity
