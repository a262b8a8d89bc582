// Writes the header of the C++ client's Options: sluice-options-header > sluice/options.h. CMake runs it.
//
// The names and what they mean come from dataplane/base/options/options.def, the types from
// control/proto/api.proto. SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <string>

#include "control/proto/option_fields.h"

namespace {

using google::protobuf::FieldDescriptor;
using namespace sluice;

std::string type_of(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return "bool";
    case FieldDescriptor::CPPTYPE_UINT32:
      return "uint32_t";
    case FieldDescriptor::CPPTYPE_UINT64:
      return "uint64_t";
    case FieldDescriptor::CPPTYPE_INT32:
      return "int32_t";
    case FieldDescriptor::CPPTYPE_INT64:
      return "int64_t";
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return "double";
    default:
      return "std::string";
  }
}

std::string member_of(const options::Option& option) {
  const FieldDescriptor& field = *api::option_field(option, api::TransferOptions());
  const std::string type = type_of(field);
  const std::string without = type == "bool" ? " = false" : type == "std::string" ? "" : " = 0";
  std::string words;
  if (option.kind == options::Kind::kChoice) {
    for (const std::string_view word : option.choices)
      words += (words.empty() ? ": \"" : ", \"") + std::string(word) + "\"";
  }
  return "  // " + std::string(option.help) + words + "\n  " +
         (field.has_presence() ? "std::optional<" + type + "> " + field.name()
                               : type + " " + field.name() + without) +
         ";\n";
}

constexpr std::string_view kHead =
    R"(// What a transfer may be asked for; client.h includes it. Made of the options of `sluice send`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sluice::client {

// Of a transfer; what is left out the node decides. Each is the option of `sluice send` of that name
// (docs/REFERENCE.md); names end in their unit.
struct Options {
)";

constexpr std::string_view kTail =
    R"(  std::vector<std::string> rules;  // "+ PATTERN" and "- PATTERN", as of --filter
  std::vector<std::string> names;  // of the one source, a directory: as --files-from lists them
  std::string lease;               // "NAME:EPOCH"; empty: none
  std::string part;                // of one file: "SET:OFFSET+LENGTH", "SET:finish", "SET:drop"; empty: all of it
};

}  // namespace sluice::client
)";

}  // namespace

int main() {
  std::cout << kHead;
  for (const options::Option& option : options::all()) {
    if (option.of != options::Of::kCommand) std::cout << member_of(option);
  }
  std::cout << kTail << std::flush;
  return std::cout ? 0 : 1;
}
