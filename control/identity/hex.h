// Bytes as lower-case hex digits, and the fingerprints of keys, which are written so.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <random>
#include <string>
#include <string_view>

namespace sluice::identity {

inline bool is_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

inline constexpr size_t kFingerprintDigits = 64;
inline bool is_fingerprint(std::string_view text) {
  return text.size() == kFingerprintDigits && is_hex(text);
}

inline std::string to_hex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    text += kDigits[static_cast<unsigned char>(byte) >> 4];
    text += kDigits[static_cast<unsigned char>(byte) & 15];
  }
  return text;
}

// Of a text for which is_hex() holds, with an even number of digits; empty otherwise.
inline std::string from_hex(std::string_view text) {
  if (text.size() % 2 != 0 || !is_hex(text)) return "";
  const auto value = [](char c) { return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10); };
  std::string bytes;
  for (size_t at = 0; at < text.size(); at += 2)
    bytes += static_cast<char>(value(text[at]) << 4 | value(text[at + 1]));
  return bytes;
}

// So many bytes by chance. For names that nobody else has, not for keys.
inline std::string random_hex(size_t bytes) {
  std::random_device random;
  std::string chosen;
  for (size_t i = 0; i < bytes; ++i) chosen += static_cast<char>(random() & 255U);
  return to_hex(chosen);
}

}  // namespace sluice::identity
