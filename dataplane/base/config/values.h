// Single values of node.toml, checked against their keys. An error names the key, what was found and what is
// allowed; where it stands, the caller says.
//
// Cold, pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/config/schema.h"
#include "dataplane/base/config/toml_text.h"

namespace sluice::config {

std::string printable(std::string_view text);  // in quotes, and not too long
// Without ".", "..", and double or trailing slashes. Links are not followed.
std::filesystem::path normal(const std::filesystem::path& path);

Result<std::string> text_value(const Key& key, const toml::node& value);
Result<uint64_t> number_value(const Key& key, const toml::node& value);
Result<std::vector<int>> cores_value(const Key& key, const toml::node& value);
Result<std::vector<ExportPeer>> peers_value(const Key& key, const toml::node& value);

}  // namespace sluice::config
