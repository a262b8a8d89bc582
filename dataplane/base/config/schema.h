// The schema of node.toml: one table that is read by the parser, the reference and the template.
//
// Cold, pure. Defaults are not repeated here: they are the member initialisers of Node.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "dataplane/base/config/config.h"

namespace sluice::config {

enum class ValueType : uint8_t { kText, kChoice, kInteger, kSize, kRate, kCores, kPeers };

using Field = std::variant<std::monostate, std::string Node::*, uint16_t Node::*, uint32_t Node::*,
                           uint64_t Node::*, std::vector<int> Node::*>;

struct Key {
  std::string_view section;  // "export" is an array of tables, read by hand
  std::string_view name;
  ValueType type = ValueType::kText;
  Field field;
  uint64_t min = 0;  // numbers
  uint64_t max = 0;
  std::string_view choices;  // kChoice: separated by one blank
  std::string_view unit;     // numbers
  std::string_view allowed;  // for people, where range and choices do not say all of it
  std::string_view meaning;
  // What is wrong with a value of the right type and range: a clause such as "must be a power of two";
  // empty when nothing is.
  std::string_view (*text_problem)(std::string_view) = nullptr;
  std::string_view (*number_problem)(uint64_t) = nullptr;
  bool required = false;
};

std::span<const Key> schema();

// The value of a key as it is written in TOML, e.g. "\"10G\"", "4", "[2, 3]".
std::string toml_value(const Key& key, const Node& node);
std::string toml_string(std::string_view text);
// "1..16", "auto, always", ...: what may be written for a key.
std::string allowed_values(const Key& key);
// Shortest exact form: 10000000000 -> "10G", 67108864 -> "64MiB".
std::string format_rate(uint64_t rate_bps);
std::string format_size(uint64_t bytes);

}  // namespace sluice::config
