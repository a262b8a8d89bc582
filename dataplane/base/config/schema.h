// The schema of node.toml: one table that is read by the parser, the reference and the template.
//
// Cold, pure. Defaults are not repeated here: they are the member initialisers of Node. The rows of
// [transfer] are made of dataplane/base/options/options.def.
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

using Field =
    std::variant<std::monostate, std::string Node::*, uint16_t Node::*, uint32_t Node::*, uint64_t Node::*,
                 std::vector<int> Node::*, uint64_t Quota::*, const options::Option*>;

struct Key {
  std::string_view section;  // "export" and "export.quota" are arrays of tables, read by hand
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
std::span<const Key> trust_keys();     // the last ones of [control]
std::span<const Key> transfer_keys();  // behind those
std::span<const Key> log_keys();
std::span<const Key> export_keys();  // the last of them
// "[port] mtu", "[[export]] path"; "[port]", "[[export.quota]]".
std::string in_section(std::string_view section, std::string_view key);
std::string section_header(std::string_view section);
bool is_of_exports(std::string_view section);

// By their names: null, false where there is none. schema_lookup.cc
const Key* find_key(std::string_view section, std::string_view name);
bool section_known(std::string_view name);  // of those that stand by themselves
// The known ones that were probably meant; a key in another section counts as a little further away.
std::string nearest_key(std::string_view section, std::string_view name);
std::string nearest_section(std::string_view name);

// The value of a key as it is written in TOML, e.g. "\"10G\"", "4", "[2, 3]".
std::string toml_value(const Key& key, const Node& node);
std::string toml_string(std::string_view text);
// "1..16", "auto, always", ...: what may be written for a key.
std::string allowed_values(const Key& key);
// Shortest exact form: 10000000000 -> "10G", 67108864 -> "64MiB".
std::string format_rate(uint64_t rate_bps);
std::string format_size(uint64_t bytes);

}  // namespace sluice::config
