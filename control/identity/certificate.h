// Keys and self-signed certificates: the OpenSSL part of an identity. Cold; any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/error.h"

namespace sluice::identity {

struct OpensslDeleter {
  void operator()(EVP_PKEY* p) const { EVP_PKEY_free(p); }
  void operator()(X509* p) const { X509_free(p); }
  void operator()(X509_CRL* p) const { X509_CRL_free(p); }
  void operator()(X509_STORE* p) const { X509_STORE_free(p); }
  void operator()(X509_STORE_CTX* p) const { X509_STORE_CTX_free(p); }
  void operator()(BIO* p) const { BIO_free_all(p); }
};
using KeyPointer = std::unique_ptr<EVP_PKEY, OpensslDeleter>;
using CertificatePointer = std::unique_ptr<X509, OpensslDeleter>;
using BioPointer = std::unique_ptr<BIO, OpensslDeleter>;

struct KeyPair {
  std::string key_pem;
  std::string certificate_pem;
};

inline constexpr int64_t kNoEnd = std::numeric_limits<int64_t>::max();

// What a key that followed another is told in its certificate (successor.h).
struct Succession {
  EVP_PKEY* former = nullptr;
  std::string former_fingerprint;
  int64_t until_unix_s = 0;
};
struct KeyPairOptions {
  std::string name;
  int64_t lifetime_s = 0;  // from now; 0: no end, since peers are pinned
  const Succession* succession = nullptr;
};
// A new Ed25519 key and its certificate, signed by itself: CN = name.
Result<KeyPair> make_key_pair(const KeyPairOptions& options);
// The first certificate in the text; whatever follows it is ignored.
Result<CertificatePointer> parse_certificate(std::string_view pem);
// All of them, in their order; kConfiguration: none, more than `most`, or one that cannot be read.
Result<std::vector<CertificatePointer>> parse_certificates(std::string_view pem, size_t most);
Result<KeyPointer> parse_key(std::string_view pem);
Result<std::string> to_pem(X509* certificate);
// SHA-256 over the public key (SPKI, DER) as 64 lower-case hex digits.
Result<std::string> fingerprint_of(X509* certificate);
// The subject's common name; empty when there is none.
std::string common_name(X509* certificate);
// Of its subjectAltName, in lower case.
std::vector<std::string> dns_names(X509* certificate);
// The subject on one line, for people.
std::string subject_of(X509* certificate);
// The end of its validity, Unix time; kNoEnd: 9999 (RFC 5280, 4.1.2.5), or it cannot be read.
int64_t expires_unix_s(X509* certificate);
int64_t unix_s_of(const ASN1_TIME* time);
// The oldest queued OpenSSL error as words; empties the queue.
std::string openssl_reason();

}  // namespace sluice::identity
