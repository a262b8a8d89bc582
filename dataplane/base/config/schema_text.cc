// Values of the schema as text: what the template writes and what errors and the reference show.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "dataplane/base/config/schema.h"

namespace sluice::config {
namespace {

template <typename T>
std::string format_with(uint64_t value, const T& units) {
  if (value == 0) return "0";
  for (const auto& [multiplier, suffix] : units) {
    if (value % multiplier == 0) return std::to_string(value / multiplier) + suffix;
  }
  return std::to_string(value);
}

struct Unit {
  uint64_t multiplier;
  const char* suffix;
};

uint64_t number_of(const Key& key, const Node& node) {
  if (const auto* f = std::get_if<uint16_t Node::*>(&key.field)) return node.*(*f);
  if (const auto* f = std::get_if<uint32_t Node::*>(&key.field)) return node.*(*f);
  if (const auto* f = std::get_if<uint64_t Node::*>(&key.field)) return node.*(*f);
  if (const auto* f = std::get_if<const options::Option*>(&key.field))
    return static_cast<uint64_t>((*f)->value_in(node.transfer));
  return 0;
}

// Decodes UTF-8; bytes that are none give U+FFFD one by one.
uint32_t first_code_point(std::string_view text, size_t* bytes) {
  const auto at = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = at(0);
  const size_t length = first < 0x80       ? 1
                        : first >> 5 == 6  ? 2
                        : first >> 4 == 14 ? 3
                        : first >> 3 == 30 ? 4
                                           : 0;
  *bytes = 1;
  if (length == 0 || length > text.size()) return 0xfffd;
  uint32_t point = length == 1 ? first : first & (0x7fU >> length);
  for (size_t i = 1; i < length; ++i) {
    if (at(i) >> 6 != 2) return 0xfffd;
    point = point << 6 | (at(i) & 0x3fU);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = point >= 0xd800 && point < 0xe000;
  if (point < kLeast[length] || point > 0x10ffff || surrogate) return 0xfffd;
  *bytes = length;
  return point;
}

}  // namespace

bool is_of_exports(std::string_view section) { return section == "export" || section == "export.quota"; }

std::string section_header(std::string_view section) {
  return (is_of_exports(section) ? "[[" : "[") + std::string(section) + (is_of_exports(section) ? "]]" : "]");
}

std::string in_section(std::string_view section, std::string_view key) {
  return section_header(section) + " " + std::string(key);
}

std::string format_rate(uint64_t rate_bps) {
  const Unit units[] = {{1'000'000'000'000, "T"}, {1'000'000'000, "G"}, {1'000'000, "M"}, {1'000, "K"}};
  return format_with(rate_bps, units);
}

std::string format_size(uint64_t bytes) {
  const Unit units[] = {{1ULL << 40, "TiB"}, {1ULL << 30, "GiB"}, {1ULL << 20, "MiB"}, {1024, "KiB"}};
  return format_with(bytes, units);
}

std::string toml_string(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    size_t bytes = 1;
    const uint32_t point = first_code_point(text, &bytes);
    text.remove_prefix(bytes);
    if (point == '"' || point == '\\') {
      out += '\\';
      out += static_cast<char>(point);
    } else if (point >= 0x20 && point < 0x7f) {
      out += static_cast<char>(point);
    } else {
      char escape[16];
      std::snprintf(escape, sizeof escape, point > 0xffff ? "\\U%08x" : "\\u%04x", point);
      out += escape;
    }
  }
  return out + '"';
}

std::string toml_value(const Key& key, const Node& node) {
  switch (key.type) {
    case ValueType::kText:
    case ValueType::kChoice: {
      if (const auto* option = std::get_if<const options::Option*>(&key.field))
        return toml_string((*option)->choices[number_of(key, node)]);
      const auto* field = std::get_if<std::string Node::*>(&key.field);
      return toml_string(field ? std::string_view(node.*(*field)) : std::string_view());
    }
    case ValueType::kInteger:
      return std::to_string(number_of(key, node));
    case ValueType::kSize: {
      const uint64_t bytes = number_of(key, node);
      return bytes % 1024 == 0 && bytes != 0 ? toml_string(format_size(bytes)) : std::to_string(bytes);
    }
    case ValueType::kRate:
      return toml_string(format_rate(number_of(key, node)));
    case ValueType::kCores: {
      std::string out = "[";
      for (const int core : node.*std::get<std::vector<int> Node::*>(key.field)) {
        if (out.size() > 1) out += ", ";
        out += std::to_string(core);
      }
      return out + "]";
    }
    case ValueType::kPeers:
      break;  // of exports, which are written by hand
  }
  return "";
}

std::string allowed_values(const Key& key) {
  if (!key.allowed.empty()) return std::string(key.allowed);
  if (key.type == ValueType::kChoice) {
    std::string out = "`";
    for (const char c : key.choices) c == ' ' ? out += "`, `" : out += c;
    return out + "`";
  }
  if (key.type == ValueType::kRate) return format_rate(key.min) + ".." + format_rate(key.max);
  if (key.type == ValueType::kSize) return format_size(key.min) + ".." + format_size(key.max);
  return std::to_string(key.min) + ".." + std::to_string(key.max);
}

}  // namespace sluice::config
