// Values of the schema as text: what the template writes and what errors and the reference show.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/config/schema.h"

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
  return 0;
}

}  // namespace

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
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      constexpr char kHex[] = "0123456789abcdef";
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string toml_value(const Key& key, const Node& node) {
  switch (key.type) {
    case ValueType::kText:
    case ValueType::kChoice: {
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
