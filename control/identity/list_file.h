// Files that an operator keeps for a node, with something on each line: read again when they have changed.
//
// next_word() and shown_word() are pure. The rest blocks; any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "control/identity/node_files.h"
#include "control/identity/stamp.h"
#include "dataplane/base/error.h"

namespace sluice::identity {

struct ListFile {
  const char* key = nullptr;      // of [control], that names the file
  size_t bytes_max = 0;           // a whole number of MiB
  const char* content = nullptr;  // what belongs there, for people
  Guard guard = Guard::kOthers;   // who may not write it
};
struct ListText {
  std::string text;
  Stamp stamp;
};
// Nothing: the file is as `known` says. kConfiguration: it cannot be read, is too long, or somebody may write
// it who may not. kResources: not just now.
Result<std::optional<ListText>> read_list_file(const std::filesystem::path& file, const ListFile& about,
                                               const std::optional<Stamp>& known);

// The next word of a line, which is cut off; empty: there is none.
std::string_view next_word(std::string_view* line);
// The next line of a text, which is cut off.
std::string_view next_line(std::string_view* text);
std::string shown_word(std::string_view word);

}  // namespace sluice::identity
