// SPDX-License-Identifier: Apache-2.0
#include "control/identity/successor.h"

#include <openssl/asn1.h>
#include <openssl/objects.h>

#include <algorithm>
#include <charconv>

#include "control/identity/hex.h"
#include "control/identity/node_files.h"
#include "control/identity/signature.h"

namespace sluice::identity {
namespace {

// Of a UUID of our own (ITU-T X.667): nobody hands these numbers out.
constexpr char kOid[] = "2.25.8149824614128149844214781391768142089";
constexpr int kTextBytesMax = 1024;
constexpr std::string_view kPurpose = "sluice successor v1\n";

struct ObjectDeleter {
  void operator()(ASN1_OBJECT* p) const { ASN1_OBJECT_free(p); }
  void operator()(ASN1_OCTET_STRING* p) const { ASN1_OCTET_STRING_free(p); }
  void operator()(X509_EXTENSION* p) const { X509_EXTENSION_free(p); }
};
template <typename T>
using Pointer = std::unique_ptr<T, ObjectDeleter>;

// Cuts off what is before the next blank.
std::string_view word(std::string_view* text) {
  const size_t at = std::min(text->find(' '), text->size());
  const std::string_view found = text->substr(0, at);
  text->remove_prefix(std::min(at + 1, text->size()));
  return found;
}

}  // namespace

std::string statement_text(const std::string& former_fingerprint, const std::string& fingerprint,
                           int64_t until_unix_s) {
  return std::string(kPurpose) + former_fingerprint + "\n" + fingerprint + "\n" +
         std::to_string(until_unix_s) + "\n";
}

bool add_succession(X509* certificate, const Succession& succession) {
  const Result<std::string> fingerprint = fingerprint_of(certificate);
  if (!fingerprint) return false;
  const Result<std::string> signature =
      sign_with(succession.former,
                statement_text(succession.former_fingerprint, *fingerprint, succession.until_unix_s));
  if (!signature) return false;
  const std::string text =
      succession.former_fingerprint + " " + std::to_string(succession.until_unix_s) + " " + *signature;
  const Pointer<ASN1_OBJECT> oid(OBJ_txt2obj(kOid, 1));
  const Pointer<ASN1_OCTET_STRING> value(ASN1_OCTET_STRING_new());
  if (!oid || !value ||
      ASN1_OCTET_STRING_set(value.get(), reinterpret_cast<const unsigned char*>(text.data()),
                            static_cast<int>(text.size())) != 1)
    return false;
  const Pointer<X509_EXTENSION> extension(X509_EXTENSION_create_by_OBJ(nullptr, oid.get(), 0, value.get()));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

std::optional<Statement> statement_in(X509* certificate) {
  const Pointer<ASN1_OBJECT> oid(OBJ_txt2obj(kOid, 1));
  const int at = oid ? X509_get_ext_by_OBJ(certificate, oid.get(), -1) : -1;
  if (at < 0) return std::nullopt;
  const ASN1_OCTET_STRING* value = X509_EXTENSION_get_data(X509_get_ext(certificate, at));
  if (ASN1_STRING_length(value) > kTextBytesMax) return std::nullopt;
  std::string_view text(reinterpret_cast<const char*>(ASN1_STRING_get0_data(value)),
                        static_cast<size_t>(ASN1_STRING_length(value)));
  Statement statement;
  statement.former_fingerprint = word(&text);
  const std::string_view until = word(&text);
  statement.signature = text;
  const auto read = std::from_chars(until.data(), until.data() + until.size(), statement.until_unix_s);
  const bool good = read.ec == std::errc() && read.ptr == until.data() + until.size() &&
                    statement.until_unix_s > 0 && is_fingerprint(statement.former_fingerprint);
  return good ? std::optional(statement) : std::nullopt;
}

bool follows(X509* certificate, const std::string& former_pem) {
  const std::optional<Statement> statement = statement_in(certificate);
  if (!statement) return false;
  const Result<std::string> fingerprint = fingerprint_of(certificate);
  const Result<CertificatePointer> former = parse_certificate(former_pem);
  if (!fingerprint || !former) return false;
  const Result<std::string> former_fingerprint = fingerprint_of(former->get());
  if (!former_fingerprint || *former_fingerprint != statement->former_fingerprint) return false;
  const std::string text = statement_text(*former_fingerprint, *fingerprint, statement->until_unix_s);
  return static_cast<bool>(check_signature(former_pem, text, statement->signature));
}

}  // namespace sluice::identity
