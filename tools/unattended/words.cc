// SPDX-License-Identifier: Apache-2.0
#include "tools/unattended/words.h"

#include <algorithm>

namespace sluice::unattended {
namespace {

constexpr std::string_view kDigits = "0123456789ABCDEF";

}  // namespace

std::string as_word(std::string_view bytes) {
  if (bytes.empty()) return "%";
  std::string word;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > ' ' && byte < 0x7f && c != '%') {
      word += c;
    } else {
      word += '%';
      word += kDigits[byte >> 4];
      word += kDigits[byte & 15];
    }
  }
  return word;
}

std::optional<std::string> of_word(std::string_view word) {
  if (word == "%") return "";
  std::string bytes;
  for (size_t i = 0; i < word.size(); ++i) {
    if (word[i] != '%') {
      bytes += word[i];
      continue;
    }
    if (i + 2 >= word.size()) return std::nullopt;
    const size_t high = kDigits.find(word[i + 1]);
    const size_t low = kDigits.find(word[i + 2]);
    if (high == std::string_view::npos || low == std::string_view::npos) return std::nullopt;
    bytes += static_cast<char>(high << 4 | low);
    i += 2;
  }
  return bytes;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (!line.empty()) {
    const size_t blank = std::min(line.find(' '), line.size());
    if (blank != 0) words.push_back(line.substr(0, blank));
    line.remove_prefix(std::min(blank + 1, line.size()));
  }
  return words;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end + 1);
  }
  return lines;
}

}  // namespace sluice::unattended
