// The digests that lists of archives have: their names, and how long they are.
//
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/error.h"

namespace sluice::digests {

enum class Kind : uint8_t { kAdler32, kCrc32c, kCrc64, kBlake3, kMd5, kSha1, kSha256, kSha512 };
inline constexpr std::array kKinds = {Kind::kAdler32, Kind::kCrc32c, Kind::kCrc64,  Kind::kBlake3,
                                      Kind::kMd5,     Kind::kSha1,   Kind::kSha256, Kind::kSha512};

std::string_view name_of(Kind kind);  // "sha256"
// Also "SHA256", "sha-256" and "SHA2-256", as other programs write it.
std::optional<Kind> kind_named(std::string_view name);
size_t hex_digits_of(Kind kind);
// "adler32, crc32c, ..."
std::string kind_names();

// "sha256,blake3": each once, in that order. kUsage names what is none.
Result<std::vector<Kind>> parse_kinds(std::string_view list);

// A set of kinds as bits, as options and messages have it. A kind's number on the wire is 1 more than its
// place.
using Mask = uint32_t;
constexpr Mask bit_of(Kind kind) { return 1U << static_cast<uint32_t>(kind); }
inline constexpr Mask kAllKinds = (1U << kKinds.size()) - 1;
Mask mask_of(const std::vector<Kind>& kinds);
std::vector<Kind> kinds_of(Mask mask);  // bits that are not known mean nothing
std::string names_of(Mask mask);        // "sha256, md5"

}  // namespace sluice::digests
