// What may stand where a shell completes an operand: words that the command knows, peers, names at them,
// sessions. The scripts of `sluice completion` ask for them with each press of a key, so it says nothing
// rather than wait.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "tools/cli/app.h"

namespace sluice::cli {

// Before the command line is parsed: `sluice __operands COMMAND WORD [DIR]`, of which no help speaks.
constexpr std::string_view kOperandsCommand = "__operands";

struct OperandQuestion {
  std::string command;  // "session show"
  std::string word;     // as far as it is typed, without the shell's quotes
};
// Prints a line for each: the word, a tab, and what it is. A name that has a line's end is left out. Local
// files are the shell's own to complete.
// `app`: `sluice` itself, with all its commands.
void print_operands(const CLI::App& app, const Context& context, const OperandQuestion& question);

}  // namespace sluice::cli
