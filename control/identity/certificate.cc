// SPDX-License-Identifier: Apache-2.0
#include "control/identity/certificate.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <cctype>
#include <ctime>

#include "control/identity/hex.h"
#include "control/identity/successor.h"

namespace sluice::identity {
namespace {

constexpr size_t kPemBytesMax = 64U << 10;

Error openssl_failed(const std::string& what) {
  return {ErrorCode::kInternal, what + ": " + openssl_reason()};
}

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
bool set_dates(X509* x, int64_t lifetime_s) {
  if (X509_gmtime_adj(X509_getm_notBefore(x), -86400L) == nullptr) return false;
  if (lifetime_s == 0) return ASN1_TIME_set_string_X509(X509_getm_notAfter(x), "99991231235959Z") == 1;
  return X509_gmtime_adj(X509_getm_notAfter(x), static_cast<long>(lifetime_s)) != nullptr;
}

bool set_names(X509* x, const std::string& name) {
  X509_NAME* subject = X509_get_subject_name(x);
  const auto* text = reinterpret_cast<const unsigned char*>(name.c_str());
  return X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, text, -1, -1, 0) == 1 &&
         X509_set_issuer_name(x, subject) == 1;
}

CertificatePointer self_signed(EVP_PKEY* key, const KeyPairOptions& options) {
  CertificatePointer certificate(X509_new());
  if (!certificate) return nullptr;
  X509* x = certificate.get();
  const bool made = X509_set_version(x, 2) == 1 && set_serial(x) && set_dates(x, options.lifetime_s) &&
                    set_names(x, options.name) && X509_set_pubkey(x, key) == 1 &&
                    add_extension(x, NID_basic_constraints, "critical,CA:FALSE") &&
                    add_extension(x, NID_ext_key_usage, "serverAuth,clientAuth") &&
                    (options.succession == nullptr || add_succession(x, *options.succession)) &&
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

Result<KeyPair> make_key_pair(const KeyPairOptions& options) {
  const KeyPointer key(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  if (!key) return openssl_failed("cannot make an Ed25519 key");
  const CertificatePointer certificate = self_signed(key.get(), options);
  if (!certificate) return openssl_failed("cannot make a certificate");
  const auto certificate_pem = to_pem(certificate.get());
  if (!certificate_pem) return certificate_pem.error();
  const BioPointer out(BIO_new(BIO_s_secmem()));
  if (!out || PEM_write_bio_PrivateKey(out.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1)
    return openssl_failed("cannot write a key");
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

Result<std::vector<CertificatePointer>> parse_certificates(std::string_view pem, size_t most) {
  const BioPointer in = reader(pem);
  std::vector<CertificatePointer> found;
  while (in && found.size() <= most) {
    CertificatePointer one(PEM_read_bio_X509(in.get(), nullptr, nullptr, nullptr));
    if (!one) break;
    found.push_back(std::move(one));
  }
  // That there is no further beginning of one is how a text ends well.
  const unsigned long last = ERR_peek_last_error();
  const bool ended = last == 0 || ERR_GET_REASON(last) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (found.size() > most)
    return Error{ErrorCode::kConfiguration, "more than " + std::to_string(most) + " certificates"};
  if (!ended) return Error{ErrorCode::kConfiguration, "a certificate in it is damaged"};
  if (found.empty()) return Error{ErrorCode::kConfiguration, "no certificate in PEM form"};
  return found;
}

Result<KeyPointer> parse_key(std::string_view pem) {
  const BioPointer in = reader(pem);
  // A password is never asked for: this runs in daemons.
  const auto no_password = [](char*, int, int, void*) { return -1; };
  KeyPointer key(in ? PEM_read_bio_PrivateKey(in.get(), nullptr, no_password, nullptr) : nullptr);
  ERR_clear_error();
  if (!key)
    return Error{
        ErrorCode::kConfiguration,
        "not a private key in PEM form without a password; put it back from a copy, or take its password "
        "off: openssl pkey -in FILE -out FILE"};
  return key;
}

Result<std::string> to_pem(X509* certificate) {
  const BioPointer out(BIO_new(BIO_s_mem()));
  if (!out || PEM_write_bio_X509(out.get(), certificate) != 1)
    return openssl_failed("cannot write a certificate");
  return contents(out.get());
}

Result<std::string> fingerprint_of(X509* certificate) {
  unsigned char* der = nullptr;
  const int size = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &der);
  if (size <= 0) return openssl_failed("cannot encode a public key");
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(der, static_cast<size_t>(size), digest);
  OPENSSL_free(der);
  return to_hex({reinterpret_cast<const char*>(digest), sizeof digest});
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

std::vector<std::string> dns_names(X509* certificate) {
  std::vector<std::string> names;
  auto* all =
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; all != nullptr && i < sk_GENERAL_NAME_num(all); ++i) {
    const GENERAL_NAME* one = sk_GENERAL_NAME_value(all, i);
    if (one->type != GEN_DNS) continue;
    const ASN1_IA5STRING* text = one->d.dNSName;
    std::string name(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                     static_cast<size_t>(ASN1_STRING_length(text)));
    for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    names.push_back(std::move(name));
  }
  GENERAL_NAMES_free(all);
  return names;
}

std::string subject_of(X509* certificate) {
  const BioPointer out(BIO_new(BIO_s_mem()));
  if (!out || X509_NAME_print_ex(out.get(), X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253) < 0)
    return "";
  return contents(out.get());
}

int64_t unix_s_of(const ASN1_TIME* time) {
  constexpr int kYearOfNoEnd = 9999 - 1900;
  std::tm parts{};
  if (time == nullptr || ASN1_TIME_to_tm(time, &parts) != 1 || parts.tm_year == kYearOfNoEnd) return kNoEnd;
  return ::timegm(&parts);
}

int64_t expires_unix_s(X509* certificate) { return unix_s_of(X509_get0_notAfter(certificate)); }

}  // namespace sluice::identity
