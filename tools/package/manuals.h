// The manual pages of the package, made from what the programs themselves understand: the tree of commands of
// `sluice`, the options of the daemons, the schema of node.toml.
//
// Pure. Nothing is said here about a command that it does not say itself, so that no page can be out of date.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace sluice::package {

struct Page {
  std::string file;  // "sluice-send.1"
  std::string text;  // for man(7)
};

std::vector<Page> manuals();

// ---- parts ----
// Text of any kind, so that none of it is taken for an order of roff.
std::string roff(std::string_view text);
// A command with all that is beneath it; `name` as on the command line, "sluice send".
Page command_page(const CLI::App& app, const std::string& name);

}  // namespace sluice::package
