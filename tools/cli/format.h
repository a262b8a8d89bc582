// Numbers and names as people read them. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/text.h"

namespace sluice::cli {

std::string format_bytes(uint64_t bytes);     // "512 B", "1.50 KiB", "460 MiB"
std::string format_rate(double rate_bps);     // "812 bit/s", "8.21 Gbit/s"
std::string format_duration(double seconds);  // "0:07", "1:02:03"
std::string format_percent(double fraction);  // "0 %", "0.01 %", "45 %"; never "100 %" below 1

using base::is_utf8;
using base::printable;
// Columns that printable text takes; wide scripts count two.
size_t display_width(std::string_view text);
// The end of a name tells more than its beginning: "…/file.bin".
std::string shorten(std::string_view text, size_t width);
// At blanks, but not between a figure and its unit, into lines of at most so many columns; a word that is
// longer is cut through. No line of empty text.
std::vector<std::string> wrap_words(std::string_view text, size_t columns);

}  // namespace sluice::cli
