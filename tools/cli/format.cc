// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <utility>

namespace sluice::cli {
namespace {

using base::decode;
using base::Decoded;

// Three significant digits.
std::string significant(double value) {
  if (value >= 99.95) return fmt::format("{:.0f}", value);
  if (value >= 9.995) return fmt::format("{:.1f}", value);
  return fmt::format("{:.2f}", value);
}

size_t columns(char32_t code) {
  const bool combining = code >= 0x300 && code <= 0x36F;
  if (combining) return 0;
  const bool wide = (code >= 0x1100 && code <= 0x115F) || (code >= 0x2E80 && code <= 0xA4CF) ||
                    (code >= 0xAC00 && code <= 0xD7A3) || (code >= 0xF900 && code <= 0xFAFF) ||
                    (code >= 0xFE30 && code <= 0xFE6F) || (code >= 0xFF00 && code <= 0xFF60) ||
                    (code >= 0x1F300 && code <= 0x1FAFF) || code >= 0x20000;
  return wide ? 2 : 1;
}

}  // namespace

std::string format_bytes(uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  constexpr std::array<const char*, 6> kUnits{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1023.5 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return significant(value) + " " + kUnits[unit];
}

std::string format_rate(double rate_bps) {
  if (!std::isfinite(rate_bps) || rate_bps < 0) rate_bps = 0;
  if (rate_bps < 1000) return fmt::format("{:.0f} bit/s", rate_bps);
  constexpr std::array<const char*, 4> kUnits{"kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"};
  double value = rate_bps / 1000;
  size_t unit = 0;
  while (value >= 999.5 && unit + 1 < kUnits.size()) {
    value /= 1000;
    ++unit;
  }
  return significant(value) + " " + kUnits[unit];
}

std::string format_duration(double seconds) {
  constexpr double kMax = 99.0 * 24 * 3600;
  if (!std::isfinite(seconds) || seconds > kMax) return "-";
  const auto whole = static_cast<uint64_t>(std::max(0.0, std::round(seconds)));
  const uint64_t hours = whole / 3600;
  const uint64_t minutes = whole / 60 % 60;
  if (hours == 0) return fmt::format("{}:{:02}", minutes, whole % 60);
  return fmt::format("{}:{:02}:{:02}", hours, minutes, whole % 60);
}

std::string format_percent(double fraction) {
  if (!std::isfinite(fraction) || fraction <= 0) return "0 %";
  const double percent = fraction * 100;
  if (percent >= 100) return fmt::format("{:.0f} %", percent);
  if (percent >= 10) return fmt::format("{:.0f} %", std::floor(percent));
  if (percent >= 0.01) return fmt::format("{:.2f} %", percent);
  return "<0.01 %";
}

size_t display_width(std::string_view text) {
  size_t width = 0;
  while (!text.empty()) {
    const Decoded next = decode(text);
    width += next.length == 0 ? 1 : columns(next.code);
    text.remove_prefix(std::max<size_t>(next.length, 1));
  }
  return width;
}

std::string shorten(std::string_view text, size_t width) {
  size_t have = display_width(text);
  if (have <= width) return std::string(text);
  if (width == 0) return "";
  while (have > width - 1) {
    const Decoded next = decode(text);
    have -= next.length == 0 ? 1 : columns(next.code);
    text.remove_prefix(std::max<size_t>(next.length, 1));
  }
  return "…" + std::string(text);
}

std::vector<std::string> wrap_words(std::string_view text, size_t width) {
  std::vector<std::string> lines;
  width = std::max<size_t>(width, 2);  // room for one that counts two
  std::string line;
  size_t have = 0;
  while (!text.empty()) {
    size_t end = std::min(text.find(' '), text.size());
    while (end < text.size() && end > 0 && std::isdigit(static_cast<unsigned char>(text[end - 1])) != 0)
      end = std::min(text.find(' ', end + 1), text.size());
    std::string_view word = text.substr(0, end);
    const size_t needed = display_width(word);
    if (have != 0 && have + 1 + needed > width) {
      lines.push_back(std::exchange(line, {}));
      have = 0;
    }
    if (have != 0) {
      line += ' ';
      ++have;
    }
    while (!word.empty()) {
      const Decoded next = decode(word);
      const size_t length = std::max<size_t>(next.length, 1);
      const size_t wide = next.length == 0 ? 1 : columns(next.code);
      if (have + wide > width) {
        lines.push_back(std::exchange(line, {}));
        have = 0;
      }
      line += word.substr(0, length);
      have += wide;
      word.remove_prefix(length);
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (!line.empty()) lines.push_back(std::move(line));
  return lines;
}

}  // namespace sluice::cli
