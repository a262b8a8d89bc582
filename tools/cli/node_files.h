// Making a node directory, and reading what `sluice node` needs of its files. Cold; blocking.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "dataplane/base/config/config.h"
#include "dataplane/base/error.h"

namespace CLI {
class Validator;
}  // namespace CLI

namespace sluice::cli {

enum class Missing : uint8_t { kRefused, kLeft };  // a directory that is not there

// "NAME=PATH[:r|w|rw|rm|wm|rwm]".
Result<config::Export> parse_export(std::string_view text, const std::filesystem::path& working_directory,
                                    Missing missing = Missing::kRefused);

// What a number of node.toml may be, for the option that sets it.
CLI::Validator range_of(std::string_view section, std::string_view key);
// For `check`, where that key takes words: they are told, and judged with the rest of node.toml.
CLI::Validator words_of(std::string_view section, std::string_view key);

std::string host_name();

// The host's name, made into a valid node name; "node" when nothing remains.
std::string default_node_name(std::string_view host_name);

// Makes the directory with identity/, run/ and node.toml. Refuses (kConfiguration) where a node is already,
// and leaves nothing behind when it fails. `named` is called once there is a key, and may change what
// node.toml is made of.
using Named = std::function<Status(config::TemplateOptions&)>;
Status create_node(const std::filesystem::path& directory, const config::TemplateOptions& options,
                   const Named& named = {});

// Removes what create_node has made there.
void forget_node(const std::filesystem::path& directory);

// The first certificate of a PEM file, or of the standard input for "-", of which nothing after the
// certificate is taken.
Result<std::string> read_certificate(const std::string& file);

}  // namespace sluice::cli
