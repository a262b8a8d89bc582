// Certificates of any kind, and lists of revoked ones, made on the spot. For tests.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <ctime>
#include <map>
#include <string>

#include "control/identity/certificate.h"

namespace sluice::identity {

inline constexpr int64_t kYearForTest = 365 * 86'400;

struct CertificateWishes {
  std::string common_name;
  std::map<int, std::string> extensions = {};  // by NID, as openssl.cnf has them
  int64_t begins_s = -86'400;                  // from now
  int64_t ends_s = kYearForTest;
};

// A key with its certificate.
struct Issued {
  KeyPointer key;
  CertificatePointer certificate;
  std::string pem() const { return *to_pem(certificate.get()); }
  std::string key_pem() const {
    const BioPointer out(BIO_new(BIO_s_mem()));
    PEM_write_bio_PrivateKey(out.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    char* data = nullptr;
    const long size = BIO_get_mem_data(out.get(), &data);
    return {data, static_cast<size_t>(size)};
  }
};

inline Issued issue(const CertificateWishes& wishes, const Issued* issuer = nullptr) {
  static long serial = 0;
  Issued made;
  made.key.reset(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  made.certificate.reset(X509_new());
  X509* const x = made.certificate.get();
  X509_set_version(x, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(x), ++serial);
  X509_gmtime_adj(X509_getm_notBefore(x), static_cast<long>(wishes.begins_s));
  X509_gmtime_adj(X509_getm_notAfter(x), static_cast<long>(wishes.ends_s));
  const auto* name = reinterpret_cast<const unsigned char*>(wishes.common_name.c_str());
  X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_UTF8, name, -1, -1, 0);
  X509* const above = issuer == nullptr ? x : issuer->certificate.get();
  X509_set_issuer_name(x, X509_get_subject_name(above));
  X509_set_pubkey(x, made.key.get());
  for (const auto& [nid, value] : wishes.extensions) {
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, above, x, nullptr, nullptr, 0);
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
    EXPECT_NE(extension, nullptr) << value;
    X509_add_ext(x, extension, -1);
    X509_EXTENSION_free(extension);
  }
  EXPECT_GT(X509_sign(x, (issuer == nullptr ? made.key : issuer->key).get(), nullptr), 0);
  return made;
}

inline Issued make_authority(const std::string& name, int64_t ends_s = kYearForTest,
                             const Issued* issuer = nullptr, std::map<int, std::string> more = {}) {
  more[NID_basic_constraints] = "critical,CA:TRUE";
  more[NID_key_usage] = "critical,keyCertSign,cRLSign";
  return issue({.common_name = name, .extensions = std::move(more), .ends_s = ends_s}, issuer);
}

inline Issued make_peer(const Issued& authority, const std::string& names, int64_t ends_s = kYearForTest) {
  return issue({.common_name = "anything", .extensions = {{NID_subject_alt_name, names}}, .ends_s = ends_s},
               &authority);
}

// Of this authority; one certificate on it, or none.
inline std::string make_list(const Issued& authority, const Issued* revoked, int64_t ends_s = kYearForTest,
                             int64_t begins_s = -86'400) {
  const std::unique_ptr<X509_CRL, OpensslDeleter> list(X509_CRL_new());
  X509_CRL_set_version(list.get(), 1);
  X509_CRL_set_issuer_name(list.get(), X509_get_subject_name(authority.certificate.get()));
  ASN1_TIME* const time = ASN1_TIME_new();
  X509_gmtime_adj(time, static_cast<long>(begins_s));
  X509_CRL_set1_lastUpdate(list.get(), time);
  X509_gmtime_adj(time, static_cast<long>(ends_s));
  X509_CRL_set1_nextUpdate(list.get(), time);
  if (revoked != nullptr) {
    X509_gmtime_adj(time, -60);
    X509_REVOKED* const entry = X509_REVOKED_new();
    X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(revoked->certificate.get()));
    X509_REVOKED_set_revocationDate(entry, time);
    X509_CRL_add0_revoked(list.get(), entry);
  }
  ASN1_TIME_free(time);
  EXPECT_GT(X509_CRL_sign(list.get(), authority.key.get(), nullptr), 0);
  const BioPointer out(BIO_new(BIO_s_mem()));
  PEM_write_bio_X509_CRL(out.get(), list.get());
  char* data = nullptr;
  const long size = BIO_get_mem_data(out.get(), &data);
  return {data, static_cast<size_t>(size)};
}

}  // namespace sluice::identity
