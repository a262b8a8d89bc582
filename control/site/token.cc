// SPDX-License-Identifier: Apache-2.0
#include "control/site/token.h"

#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <vector>

#include "control/identity/certificate.h"
#include "control/identity/hex.h"
#include "control/identity/sha256.h"
#include "control/identity/signature.h"
#include "dataplane/base/config/config.h"

namespace sluice::site {
namespace {

constexpr std::string_view kBegin = "sluice-token-1.";
constexpr std::string_view kPurpose = "sluice enrol v1\n";
constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr size_t kKeyBytes = 32;
constexpr size_t kCheckBytes = 4;
constexpr size_t kTextBytesMax = 1024;
constexpr size_t kSignatureBytes = 64;

struct ContextDeleter {
  void operator()(EVP_MD_CTX* p) const { EVP_MD_CTX_free(p); }
};

std::string base64url(std::string_view bytes) {
  std::string text;
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - at);
    uint32_t bits = 0;
    for (size_t i = 0; i < 3; ++i) bits = bits << 8 | (i < count ? static_cast<uint8_t>(bytes[at + i]) : 0U);
    for (size_t i = 0; i <= count; ++i) text += kDigits[bits >> (18 - 6 * i) & 63];
  }
  return text;
}

// False: it is none, or not the one way to write these bytes.
bool from_base64url(std::string_view text, std::string* bytes) {
  uint32_t bits = 0;
  unsigned held = 0;
  for (const char c : text) {
    const size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return false;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    held += 6;
    if (held < 8) continue;
    held -= 8;
    *bytes += static_cast<char>(bits >> held & 255);
  }
  return held < 6 && (bits & ((1U << held) - 1)) == 0;
}

// A word with its length before it, cut off what is left. False: there is none.
bool take_word(std::string_view* rest, std::string* word) {
  if (rest->empty()) return false;
  const auto size = static_cast<uint8_t>(rest->front());
  if (rest->size() < 1U + size) return false;
  *word = rest->substr(1, size);
  rest->remove_prefix(1U + size);
  return true;
}

std::string with_length(const std::string& word) { return static_cast<char>(word.size()) + word; }

identity::KeyPointer key_of(const Token& token) {
  return identity::KeyPointer(EVP_PKEY_new_raw_private_key(
      EVP_PKEY_ED25519, nullptr, reinterpret_cast<const unsigned char*>(token.seed.data()),
      token.seed.size()));
}

std::string text_of(const Wish& wish) {
  return std::string(kPurpose) + wish.token + "\n" + wish.name + "\n" + wish.fingerprint + "\n" +
         wish.binding + "\n";
}

Error wrong(const std::string& why) {
  return {ErrorCode::kUsage, "this is no token: " + why + "; take it whole from whoever made it"};
}

bool plain_address(const std::string& text) {
  return text.empty() || (std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; }) &&
                          static_cast<bool>(config::parse_host_port(text)));
}

}  // namespace

Result<Token> make_token(std::string authority, std::string address, std::string name) {
  std::string seed(kKeyBytes, '\0');
  if (RAND_priv_bytes(reinterpret_cast<unsigned char*>(seed.data()), kKeyBytes) != 1)
    return Error{ErrorCode::kResources, "no random bytes for a token: " + identity::openssl_reason()};
  return Token{std::move(authority), std::move(seed), std::move(address), std::move(name)};
}

std::string to_text(const Token& token) {
  std::string bytes =
      identity::from_hex(token.authority) + token.seed + with_length(token.address) + with_length(token.name);
  bytes += identity::sha256_of(bytes).substr(0, kCheckBytes);
  return std::string(kBegin) + base64url(bytes);
}

Result<Token> parse_token(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  text = text.substr(0, text.find_last_not_of(kBlanks) + 1);
  if (text.empty()) return wrong("it is empty");
  if (!text.starts_with(kBegin)) return wrong("it does not begin with " + std::string(kBegin));
  if (text.size() > kTextBytesMax) return wrong("it is too long");
  std::string bytes;
  if (!from_base64url(text.substr(kBegin.size()), &bytes) || bytes.size() < 2 * kKeyBytes + 2 + kCheckBytes)
    return wrong("it was cut off or mistyped");
  std::string_view rest = bytes;
  const std::string_view check = rest.substr(rest.size() - kCheckBytes);
  rest.remove_suffix(kCheckBytes);
  if (identity::sha256_of(rest).substr(0, kCheckBytes) != check) return wrong("it was cut off or mistyped");
  Token token{.authority = identity::to_hex(rest.substr(0, kKeyBytes)),
              .seed = std::string(rest.substr(kKeyBytes, kKeyBytes)),
              .address = {},
              .name = {}};
  rest.remove_prefix(2 * kKeyBytes);
  if (!take_word(&rest, &token.address) || !take_word(&rest, &token.name) || !rest.empty())
    return wrong("its parts do not fit");
  if (!plain_address(token.address)) return wrong("the address in it is none");
  if (!token.name.empty() && !config::valid_node_name(token.name)) return wrong("the name in it is none");
  return token;
}

Result<std::string> public_key_of(const Token& token) {
  const identity::KeyPointer key = key_of(token);
  std::array<unsigned char, kKeyBytes> raw{};
  size_t size = raw.size();
  if (!key || EVP_PKEY_get_raw_public_key(key.get(), raw.data(), &size) != 1 || size != raw.size())
    return Error{ErrorCode::kInternal, "the key of a token cannot be used: " + identity::openssl_reason()};
  return identity::to_hex({reinterpret_cast<const char*>(raw.data()), raw.size()});
}

std::string token_id(const std::string& public_key) {
  return identity::to_hex(identity::sha256_of(identity::from_hex(public_key))).substr(0, kTokenIdDigits);
}

bool valid_token_id(std::string_view text) { return text.size() == kTokenIdDigits && identity::is_hex(text); }

Result<std::string> sign_wish(const Token& token, const Wish& wish) {
  const identity::KeyPointer key = key_of(token);
  if (!key)
    return Error{ErrorCode::kInternal, "the key of a token cannot be used: " + identity::openssl_reason()};
  return identity::sign_with(key.get(), text_of(wish));
}

bool wish_is_signed(const std::string& public_key, const Wish& wish, std::string_view signature) {
  const std::string raw = identity::from_hex(public_key);
  const identity::KeyPointer key(EVP_PKEY_new_raw_public_key(
      EVP_PKEY_ED25519, nullptr, reinterpret_cast<const unsigned char*>(raw.data()), raw.size()));
  const std::unique_ptr<EVP_MD_CTX, ContextDeleter> context(EVP_MD_CTX_new());
  if (!key || !context || signature.size() != (kSignatureBytes + 2) / 3 * 4) return false;
  std::array<unsigned char, 72> bytes{};
  const int size = EVP_DecodeBlock(bytes.data(), reinterpret_cast<const unsigned char*>(signature.data()),
                                   static_cast<int>(signature.size()));
  const std::string text = text_of(wish);
  const bool good = size >= static_cast<int>(kSignatureBytes) &&
                    EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
                    EVP_DigestVerify(context.get(), bytes.data(), kSignatureBytes,
                                     reinterpret_cast<const unsigned char*>(text.data()), text.size()) == 1;
  (void)identity::openssl_reason();  // empties the queue
  return good;
}

bool valid_pattern(std::string_view pattern) {
  if (!pattern.ends_with('*')) return config::valid_node_name(pattern);
  pattern.remove_suffix(1);
  return pattern.empty() || config::valid_node_name(pattern);
}

bool matches(std::string_view pattern, std::string_view name) {
  if (!pattern.ends_with('*')) return pattern == name;
  return name.starts_with(pattern.substr(0, pattern.size() - 1));
}

}  // namespace sluice::site
