// SPDX-License-Identifier: Apache-2.0
#include "control/identity/signature.h"

#include <vector>

#include "control/identity/certificate.h"
#include "control/identity/node_files.h"

namespace sluice::identity {
namespace {

struct ContextDeleter {
  void operator()(EVP_MD_CTX* p) const { EVP_MD_CTX_free(p); }
};
using ContextPointer = std::unique_ptr<EVP_MD_CTX, ContextDeleter>;

constexpr size_t kSignatureBytesMax = 1024;  // an Ed25519 one has 64

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

Error forged() { return {ErrorCode::kIntegrity, "the signature is not that of this text by this key"}; }

// Empty where it is no base64.
std::vector<unsigned char> decoded(std::string_view base64) {
  if (base64.empty() || base64.size() % 4 != 0 || base64.size() > 2 * kSignatureBytesMax) return {};
  std::vector<unsigned char> bytes(base64.size() / 4 * 3);
  const int size = EVP_DecodeBlock(bytes.data(), bytes_of(base64), static_cast<int>(base64.size()));
  if (size < 0) return {};
  size_t padding = 0;
  while (padding < 2 && base64[base64.size() - 1 - padding] == '=') ++padding;
  bytes.resize(static_cast<size_t>(size) - padding);
  return bytes;
}

std::string encoded(const std::vector<unsigned char>& bytes) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');
  const int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), bytes.data(),
                                   static_cast<int>(bytes.size()));
  text.resize(static_cast<size_t>(size));
  return text;
}

}  // namespace

Result<std::string> sign(const Identity& self, std::string_view text) {
  const Result<std::string> pem = read_small_file(self.key_file);
  if (!pem) return pem.error();
  const Result<KeyPointer> key = parse_key(*pem);
  if (!key) return key.error();
  return sign_with(key->get(), text);
}

Result<std::string> sign_with(EVP_PKEY* key, std::string_view text) {
  if (text.starts_with(' ')) return Error{ErrorCode::kUsage, "what is signed must say what it is"};
  const ContextPointer context(EVP_MD_CTX_new());
  size_t size = kSignatureBytesMax;
  std::vector<unsigned char> signature(size);
  // Null: Ed25519 hashes by itself.
  const bool made = context && EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key) == 1 &&
                    EVP_DigestSign(context.get(), signature.data(), &size, bytes_of(text), text.size()) == 1;
  if (!made) return Error{ErrorCode::kInternal, "cannot sign: " + openssl_reason()};
  signature.resize(size);
  return encoded(signature);
}

Status check_signature(std::string_view certificate_pem, std::string_view text, std::string_view signature) {
  const Result<CertificatePointer> certificate = parse_certificate(certificate_pem);
  if (!certificate) return certificate.error();
  EVP_PKEY* const key = X509_get0_pubkey(certificate->get());
  const std::vector<unsigned char> bytes = decoded(signature);
  const ContextPointer context(EVP_MD_CTX_new());
  const bool good =
      key != nullptr && EVP_PKEY_is_a(key, "ED25519") == 1 && !bytes.empty() && context &&
      EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key) == 1 &&
      EVP_DigestVerify(context.get(), bytes.data(), bytes.size(), bytes_of(text), text.size()) == 1;
  if (good) return {};
  (void)openssl_reason();  // empties the queue
  return forged();
}

}  // namespace sluice::identity
