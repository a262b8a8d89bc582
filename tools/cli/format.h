// Numbers and names as people read them. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::cli {

std::string format_bytes(uint64_t bytes);     // "512 B", "1.50 KiB", "460 MiB"
std::string format_rate(double rate_bps);     // "812 bit/s", "8.21 Gbit/s"
std::string format_duration(double seconds);  // "0:07", "1:02:03"
std::string format_percent(double fraction);  // "0 %", "0.01 %", "45 %"; never "100 %" below 1

bool is_utf8(std::string_view text);
// Names and messages come from other nodes: control characters and malformed UTF-8 become '?', so that
// they stay on their line and cannot steer a terminal.
std::string printable(std::string_view text);
// Columns that printable text takes; wide scripts count two.
size_t display_width(std::string_view text);
// The end of a name tells more than its beginning: "…/file.bin".
std::string shorten(std::string_view text, size_t width);

}  // namespace sluice::cli
