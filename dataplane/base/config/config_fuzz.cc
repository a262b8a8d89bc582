// Any text as node.toml: parse() answers with a node or with a one-line error.
// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "dataplane/base/config/config.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto node = sluice::config::parse(text, "/node", "fuzz");
  if (!node && (node.error().message.empty() || node.error().message.find('\n') != std::string::npos))
    abort();
  if (node && !sluice::config::valid_node_name(node->name)) abort();
  return 0;
}
