// SPDX-License-Identifier: Apache-2.0
#include "control/site/issue.h"

#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <ctime>

namespace sluice::site {
namespace {

constexpr int kSecurityBitsMin = 112;    // as identity::Authority judges them
constexpr int64_t kBackdatedS = 86'400;  // for a host whose clock is behind
constexpr const char* kNoEndText = "99991231235959Z";

struct TimeDeleter {
  void operator()(ASN1_TIME* p) const { ASN1_TIME_free(p); }
};

Error failed(const std::string& what) {
  return {ErrorCode::kInternal, "cannot make " + what + ": " + identity::openssl_reason()};
}

bool add(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  if (extension == nullptr) return false;
  const bool added = X509_add_ext(certificate, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  return added;
}

bool set_serial(X509* certificate) {
  uint64_t serial = 0;
  if (RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial) != 1) return false;
  return ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), (serial >> 1) | 1) == 1;
}

bool set_common_name(X509* certificate, const std::string& name) {
  const auto* text = reinterpret_cast<const unsigned char*>(name.c_str());
  return X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8, text, -1, -1,
                                    0) == 1;
}

bool set_dates(X509* x, int64_t lifetime_s) {
  return X509_gmtime_adj(X509_getm_notBefore(x), -kBackdatedS) != nullptr &&
         X509_gmtime_adj(X509_getm_notAfter(x), static_cast<long>(lifetime_s)) != nullptr;
}

// Ed25519 hashes by itself.
const EVP_MD* digest_for(EVP_PKEY* key) {
  return EVP_PKEY_is_a(key, "ED25519") == 1 || EVP_PKEY_is_a(key, "ED448") == 1 ? nullptr : EVP_sha256();
}

}  // namespace

Result<identity::KeyPair> make_authority(const std::string& name, int64_t lifetime_s) {
  const identity::KeyPointer key(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  const identity::CertificatePointer made(key ? X509_new() : nullptr);
  X509* const x = made.get();
  // digitalSignature: by this key the holder proves in TLS that it is the authority.
  const bool good =
      x != nullptr && X509_set_version(x, 2) == 1 && set_serial(x) && set_dates(x, lifetime_s) &&
      set_common_name(x, name) && X509_set_issuer_name(x, X509_get_subject_name(x)) == 1 &&
      X509_set_pubkey(x, key.get()) == 1 && add(x, x, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
      add(x, x, NID_key_usage, "critical,digitalSignature,keyCertSign,cRLSign") &&
      add(x, x, NID_subject_key_identifier, "hash") && X509_sign(x, key.get(), nullptr) > 0;
  if (!good) return failed("the certificate of an authority");
  const auto certificate_pem = identity::to_pem(x);
  if (!certificate_pem) return certificate_pem.error();
  const identity::BioPointer out(BIO_new(BIO_s_secmem()));
  char* text = nullptr;
  if (!out || PEM_write_bio_PrivateKey(out.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1)
    return failed("a key");
  const long size = BIO_get_mem_data(out.get(), &text);
  return identity::KeyPair{std::string(text, static_cast<size_t>(size)), *certificate_pem};
}

Result<std::string> issue(const Issuer& issuer, const Subject& subject) {
  if (subject.key == nullptr || EVP_PKEY_get_security_bits(subject.key) < kSecurityBitsMin)
    return Error{ErrorCode::kConfiguration,
                 "the key of the node is too weak; take the one that 'sluice node init' makes"};
  const int64_t left_s = identity::expires_unix_s(issuer.certificate) - std::time(nullptr);
  if (left_s <= 0)
    return Error{ErrorCode::kConfiguration, "the certificate of the authority itself is out of date"};
  const identity::CertificatePointer made(X509_new());
  X509* const x = made.get();
  const bool good = x != nullptr && X509_set_version(x, 2) == 1 && set_serial(x) &&
                    set_dates(x, std::min(left_s, subject.lifetime_s)) && set_common_name(x, subject.name) &&
                    X509_set_issuer_name(x, X509_get_subject_name(issuer.certificate)) == 1 &&
                    X509_set_pubkey(x, subject.key) == 1 &&
                    add(x, x, NID_basic_constraints, "critical,CA:FALSE") &&
                    add(x, x, NID_key_usage, "critical,digitalSignature") &&
                    add(x, x, NID_ext_key_usage, "serverAuth,clientAuth") &&
                    add(x, x, NID_subject_alt_name, "DNS:" + subject.dns_name) &&
                    X509_sign(x, issuer.key, digest_for(issuer.key)) > 0;
  if (!good) return failed("a certificate");
  return identity::to_pem(x);
}

Result<std::string> make_list(const Issuer& issuer,
                              const std::vector<identity::CertificatePointer>& revoked) {
  const std::unique_ptr<X509_CRL, identity::OpensslDeleter> list(X509_CRL_new());
  const std::unique_ptr<ASN1_TIME, TimeDeleter> now(X509_gmtime_adj(nullptr, 0));
  const std::unique_ptr<ASN1_TIME, TimeDeleter> begin(X509_gmtime_adj(nullptr, -kBackdatedS));
  const std::unique_ptr<ASN1_TIME, TimeDeleter> end(ASN1_TIME_new());
  bool good = list && now && begin && end && ASN1_TIME_set_string_X509(end.get(), kNoEndText) == 1 &&
              X509_CRL_set_version(list.get(), 1) == 1 &&
              X509_CRL_set_issuer_name(list.get(), X509_get_subject_name(issuer.certificate)) == 1 &&
              X509_CRL_set1_lastUpdate(list.get(), begin.get()) == 1 &&
              X509_CRL_set1_nextUpdate(list.get(), end.get()) == 1;
  for (size_t i = 0; good && i < revoked.size(); ++i) {
    X509_REVOKED* const entry = X509_REVOKED_new();
    good = entry != nullptr &&
           X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(revoked[i].get())) == 1 &&
           X509_REVOKED_set_revocationDate(entry, now.get()) == 1 &&
           X509_CRL_add0_revoked(list.get(), entry) == 1;
    if (!good) X509_REVOKED_free(entry);
  }
  const identity::BioPointer out(BIO_new(BIO_s_mem()));
  good = good && X509_CRL_sort(list.get()) == 1 &&
         X509_CRL_sign(list.get(), issuer.key, digest_for(issuer.key)) > 0 && out &&
         PEM_write_bio_X509_CRL(out.get(), list.get()) == 1;
  if (!good) return failed("a list of revoked certificates");
  char* text = nullptr;
  const long size = BIO_get_mem_data(out.get(), &text);
  return std::string(text, static_cast<size_t>(size));
}

}  // namespace sluice::site
