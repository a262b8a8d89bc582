// The wait for digests of a file that is read for them, as both nodes name it.
//
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::transfer {

// "digest sha256: 3.1 of 5.0 GB"; with others at the same time "(3 files)" behind it.
inline std::string digest_wait(std::string_view what, uint64_t bytes, uint64_t bytes_total, size_t files) {
  const bool large = bytes_total >= 1'000'000'000;
  const double unit = large ? 1e9 : 1e6;
  return fmt::format("{}: {:.1f} of {:.1f} {}{}", what, static_cast<double>(bytes) / unit,
                     static_cast<double>(bytes_total) / unit, large ? "GB" : "MB",
                     files > 1 ? fmt::format(" ({} files)", files) : "");
}

}  // namespace sluice::transfer
