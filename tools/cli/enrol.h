// What a new node does to have its key signed: finds the token, and has sluice-enrol speak with the
// authority's holder.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "control/site/token.h"
#include "dataplane/base/config/config.h"
#include "dataplane/base/error.h"

namespace CLI {
class App;
}  // namespace CLI

namespace sluice::cli {

struct Context;

struct EnrolFlags {
  std::string token;  // as it was given: itself, @FILE, or - for the standard input
  std::string at;
  uint32_t timeout_s = 60;
};

// --enrol and --at, of a command that makes a node.
void add_enrol_options(CLI::App& command, EnrolFlags& flags);

// kUsage: it is none, or the file cannot be read.
Result<site::Token> token_of(const Context& context, const EnrolFlags& flags);

// Of a node directory that has a key: its certificate is the authority's then, and `options` say so. A token
// that is good once is used up by that.
Status enrol(const Context& context, const std::filesystem::path& directory, const site::Token& token,
             const EnrolFlags& flags, config::TemplateOptions& options);

}  // namespace sluice::cli
