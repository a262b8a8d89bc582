// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/text.h"

#include <algorithm>
#include <array>

namespace sluice::base {
namespace {

constexpr std::string_view kCut = "…";

// C0, DEL, C1, and the marks that turn the direction of writing.
bool steers(char32_t code) {
  return code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x2028 || code == 0x2029 || code == 0x200E ||
         code == 0x200F || (code >= 0x202A && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}

}  // namespace

Decoded decode(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {lead, 1};
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return {};
  char32_t code = lead & (0x7FU >> length);
  for (size_t i = 1; i < length; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xC0) != 0x80) return {};
    code = code << 6 | (next & 0x3F);
  }
  constexpr std::array<char32_t, 5> kMin{0, 0, 0x80, 0x800, 0x10000};
  if (code < kMin[length] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return {};
  return {code, length};
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const Decoded next = decode(text);
    if (next.length == 0) return false;
    text.remove_prefix(next.length);
  }
  return true;
}

std::string printable(std::string_view text) { return printable(text, std::string::npos); }

std::string printable(std::string_view text, size_t bytes_max) {
  std::string out;
  size_t room_for_mark = 0;  // where `out` may be cut so that the mark still fits
  while (!text.empty()) {
    const Decoded next = decode(text);
    const size_t length = std::max<size_t>(next.length, 1);
    const bool shown = next.length != 0 && !steers(next.code);
    if (bytes_max - out.size() < (shown ? length : 1)) {
      out.resize(room_for_mark);
      return out.append(kCut);
    }
    if (bytes_max - out.size() >= kCut.size()) room_for_mark = out.size();
    if (shown) {
      out += text.substr(0, length);
    } else {
      out += '?';
    }
    text.remove_prefix(length);
  }
  return out;
}

}  // namespace sluice::base
