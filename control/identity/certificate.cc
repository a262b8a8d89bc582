// SPDX-License-Identifier: Apache-2.0
#include "control/identity/certificate.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/x509v3.h>

namespace sluice::identity {
namespace {

constexpr size_t kPemBytesMax = 64U << 10;

Error failed(const std::string& what) { return {ErrorCode::kInternal, what + ": " + openssl_reason()}; }

BioPointer reader(std::string_view text) {
  if (text.empty() || text.size() > kPemBytesMax) return nullptr;
  return BioPointer(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

std::string contents(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return size > 0 ? std::string(data, static_cast<size_t>(size)) : std::string();
}

bool add_extension(X509* certificate, int nid, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value);
  if (extension == nullptr) return false;
  const bool added = X509_add_ext(certificate, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  return added;
}

bool set_serial(X509* certificate) {
  uint8_t raw[8];
  if (RAND_bytes(raw, sizeof raw) != 1) return false;
  uint64_t serial = 0;
  for (const uint8_t byte : raw) serial = serial << 8 | byte;
  return ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), (serial >> 1) | 1) == 1;
}

// RFC 5280, 4.1.2.5: 99991231235959Z means that there is no good end.
CertificatePointer self_signed(EVP_PKEY* key, const std::string& name) {
  CertificatePointer certificate(X509_new());
  if (!certificate) return nullptr;
  X509* x = certificate.get();
  X509_NAME* subject = X509_get_subject_name(x);
  const auto* text = reinterpret_cast<const unsigned char*>(name.c_str());
  const bool made = X509_set_version(x, 2) == 1 && set_serial(x) &&
                    X509_gmtime_adj(X509_getm_notBefore(x), -86400L) != nullptr &&
                    ASN1_TIME_set_string_X509(X509_getm_notAfter(x), "99991231235959Z") == 1 &&
                    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, text, -1, -1, 0) == 1 &&
                    X509_set_issuer_name(x, subject) == 1 && X509_set_pubkey(x, key) == 1 &&
                    add_extension(x, NID_basic_constraints, "critical,CA:FALSE") &&
                    add_extension(x, NID_ext_key_usage, "serverAuth,clientAuth") &&
                    X509_sign(x, key, nullptr) > 0;
  return made ? std::move(certificate) : nullptr;
}

}  // namespace

std::string openssl_reason() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* words = code != 0 ? ERR_reason_error_string(code) : nullptr;
  return words != nullptr ? words : "no reason given by OpenSSL";
}

Result<KeyPair> make_key_pair(const std::string& name) {
  const KeyPointer key(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  if (!key) return failed("cannot make an Ed25519 key");
  const CertificatePointer certificate = self_signed(key.get(), name);
  if (!certificate) return failed("cannot make a certificate");
  const auto certificate_pem = to_pem(certificate.get());
  if (!certificate_pem) return certificate_pem.error();
  const BioPointer out(BIO_new(BIO_s_secmem()));
  if (!out || PEM_write_bio_PrivateKey(out.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1)
    return failed("cannot write a key");
  return KeyPair{contents(out.get()), *certificate_pem};
}

Result<CertificatePointer> parse_certificate(std::string_view pem) {
  const BioPointer in = reader(pem);
  CertificatePointer certificate(in ? PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr) : nullptr);
  ERR_clear_error();
  if (!certificate)
    return Error{ErrorCode::kConfiguration,
                 "not a certificate in PEM form; take the peer's identity/cert.pem as it is"};
  return certificate;
}

Result<KeyPointer> parse_key(std::string_view pem) {
  const BioPointer in = reader(pem);
  // A password is never asked for: this runs in daemons.
  const auto no_password = [](char*, int, int, void*) { return -1; };
  KeyPointer key(in ? PEM_read_bio_PrivateKey(in.get(), nullptr, no_password, nullptr) : nullptr);
  ERR_clear_error();
  if (!key) return Error{ErrorCode::kConfiguration, "not a private key in PEM form without a password"};
  return key;
}

Result<std::string> to_pem(X509* certificate) {
  const BioPointer out(BIO_new(BIO_s_mem()));
  if (!out || PEM_write_bio_X509(out.get(), certificate) != 1) return failed("cannot write a certificate");
  return contents(out.get());
}

Result<std::string> fingerprint_of(X509* certificate) {
  unsigned char* der = nullptr;
  const int size = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &der);
  if (size <= 0) return failed("cannot encode a public key");
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(der, static_cast<size_t>(size), digest);
  OPENSSL_free(der);
  constexpr char kHex[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : digest) {
    text += kHex[byte >> 4];
    text += kHex[byte & 15];
  }
  return text;
}

std::string common_name(X509* certificate) {
  X509_NAME* subject = X509_get_subject_name(certificate);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at < 0) return "";
  unsigned char* text = nullptr;
  const int size = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
  if (size < 0) return "";
  std::string name(reinterpret_cast<char*>(text), static_cast<size_t>(size));
  OPENSSL_free(text);
  return name;
}

}  // namespace sluice::identity
