// Paths as text: how long they may be, how they are ordered, and under which name what they lead to arrives.
//
// Pure. Paths and names are bytes: any but NUL, and '/' in names.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstddef>
#include <string_view>

namespace sluice::base {

inline constexpr size_t kPathBytesMax = 4096;  // PATH_MAX of Linux
inline constexpr size_t kNameBytesMax = 255;   // NAME_MAX

// By the bytes of names, component by component, so that a directory comes before what is in it, and all of
// that before the next name.
std::strong_ordering compare_paths(std::string_view one, std::string_view other);

// Of a directory that is sent, as rsync has it: "DIR" arrives as DIR; of "DIR/", "DIR/." and an export by its
// name alone what is in it arrives, and this is empty.
std::string_view arriving_name(std::string_view directory);

}  // namespace sluice::base
