// Names of another node as people read them. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "control/proto/api.pb.h"

namespace sluice::cli {

// `name` in `directory`; of an empty one `name` alone.
std::string path_beneath(const std::string& directory, const std::string& name);

// On one line, without anything that steers a terminal, and such that the bytes can be told from it: a
// backslash, control characters and what is no UTF-8 stand as in C (\\, \n, \x1b).
std::string escaped(std::string_view bytes);

// "drwxr-xr-x"
std::string mode_text(const api::NameEntry& entry);

// `path` is what is shown of the entry's name.
std::string long_line(const api::NameEntry& entry, const std::string& path);
std::string stat_text(const api::NameEntry& entry, const std::string& path);

}  // namespace sluice::cli
