// Command lines of all programs: reads the words that a CLI::App describes, without changing a byte of any.
//
// CLI11's own parser is not safe with names: it takes [a,b] for a list and "++" for an end of a command,
// drops
// "--" in some places, ignores an empty value, and reads 010 as 8. So the words are divided here, CLI11 sees
// a placeholder for each value, and the value takes its place when CLI11 checks and stores it.
//
// The rules are those of getopt_long(3): a value may stand behind "=" or be the next word, whatever it begins
// with; short flags may be joined; behind "--" nothing is an option. An empty value is an error. A word such
// as -3 is an option only if there is one of that name. Each option takes one value at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/error.h"

namespace CLI {
class App;
class Option;
class Validator;
}  // namespace CLI

namespace sluice::arguments {

// Parses `words`, which are without the program's name, and runs the callbacks of `app`. False: only help or
// the version was asked for, and is printed to `out`. kUsage: one line, which names the help that tells more
// if `app` has a name.
Result<bool> parse(CLI::App& app, const std::vector<std::string>& words, std::ostream& out);

// The same, for a program's main(): prints errors to the standard error. A status: the program ends with it.
struct Ended {
  bool ended = false;
  int status = 0;
};
Ended parse_main(CLI::App& app, int argc, const char* const* argv);

// For `transform`: a decimal number from `least` to `most`, for an option that is stored as a number. CLI11's
// own ranges take true, 0x10, 010 (as 8) and nan.
CLI::Validator whole(int64_t least, int64_t most);
CLI::Validator number(double least, double most);

// For `check`: these words are told to people and shells. It refuses nothing: whoever reads the value does.
CLI::Validator told(const std::vector<std::string>& words);

// What an option takes, for people.
struct ValueWords {
  std::string name;                  // "RATE"
  std::vector<std::string> choices;  // of CLI::IsMember
  std::string range;                 // "1 to 16", of whole() or number()

  // "1 to 16", "crc64 or crc32c"; empty: nothing is said beforehand.
  std::string allowed() const;
  // What a shell can offer: the choices, or the words of the name itself: "keep|remove|move:DIR" has two.
  std::vector<std::string> offered() const;
};
ValueWords value_words(const CLI::Option& option);

// Of `known` the one that was probably meant by `word`; empty: none is near.
std::string nearest(std::string_view word, const std::vector<std::string>& known);

}  // namespace sluice::arguments
