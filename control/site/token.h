// What the holder of an authority hands to whoever is to make a node: the right to have one key signed.
//
// A token is the seed of an Ed25519 key of its own. The newcomer signs with it and never sends it; the
// authority's holder keeps the public key alone, so that whoever reads the holder's files cannot enrol. With
// it go the fingerprint of the authority's key, so that the newcomer knows whom it speaks to, and where that
// one serves.
//
// Written "sluice-token-1." and base64url (RFC 4648, without padding) of: fingerprint (32 bytes), seed (32),
// length of the address (1), the address, length of the name (1), the name, and the first 4 bytes of the
// SHA-256 of all before, by which a word that was cut off or mistyped is known.
//
// Pure, but for make_token(). Any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "dataplane/base/error.h"

namespace sluice::site {

inline constexpr uint16_t kEnrolPort = 7401;
inline constexpr size_t kTokenIdDigits = 16;

struct Token {
  std::string authority;  // the fingerprint of its key, 64 hex digits
  std::string seed;       // 32 bytes; secret
  std::string address;    // "host:port"; empty: to be named by other means
  std::string name;       // of the node; empty: it chooses one
};

// kResources: no random bytes.
Result<Token> make_token(std::string authority, std::string address, std::string name);
std::string to_text(const Token& token);
// White space around it is ignored. kUsage: what is wrong with it, without a part of it.
Result<Token> parse_token(std::string_view text);

// 64 hex digits of the public key, and what it is called by: the first 16 of its SHA-256.
Result<std::string> public_key_of(const Token& token);
std::string token_id(const std::string& public_key);
bool valid_token_id(std::string_view text);

// What is asked of the authority's holder, as it is signed. `binding` is what only the two ends of this TLS
// connection know, in hex.
struct Wish {
  std::string token;        // its id
  std::string name;         // of the node
  std::string fingerprint;  // of the key that the node showed
  std::string binding;
};
// In base64.
Result<std::string> sign_wish(const Token& token, const Wish& wish);
bool wish_is_signed(const std::string& public_key, const Wish& wish, std::string_view signature);

// "beta" is a name, "job-*" stands for all that begin so, "*" for each.
bool valid_pattern(std::string_view pattern);
bool matches(std::string_view pattern, std::string_view name);

}  // namespace sluice::site
