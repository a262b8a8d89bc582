// What a session does to one file that several sessions write side by side, each a range of it (docs/WIRE.md
// 2.17). As operators write it: SET:OFFSET+LENGTH, SET:OFFSET+ (up to the end), SET:finish, SET:drop.
//
// Plain data, pure functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "dataplane/base/error.h"

namespace sluice::selection {

// Ranges begin and end at multiples of it, so that no block of a disk, and no stripe, belongs to two of them.
// Only the file's end may lie elsewhere.
inline constexpr uint64_t kPartAlignmentBytes = 1U << 20;
inline constexpr size_t kPartSetDigits = 32;

struct FilePart {
  enum class What : uint8_t {
    kWhole,   // the session is about no part
    kRange,   // writes a range of the unfinished file
    kFinish,  // gives that file its name: all of its ranges are there
    kDrop,    // removes that file, and what was noted of its ranges
  };
  What what = What::kWhole;
  std::string set;           // 32 hex digits: those who write one file have the same
  uint64_t offset = 0;       // kRange
  uint64_t length = 0;       // kRange; as asked for: 0 means up to the end of the file
  uint64_t whole_bytes = 0;  // of the whole file; as asked for: 0

  bool operator==(const FilePart&) const = default;
};

inline bool is_part(const FilePart& part) { return part.what != FilePart::What::kWhole; }
inline bool is_range(const FilePart& part) { return part.what == FilePart::What::kRange; }

// kUsage. Empty: no part.
Result<FilePart> parse_file_part(std::string_view text);
// As parse_file_part reads it; empty: no part.
std::string file_part_text(const FilePart& part);
// Why it cannot be, as it was asked for; empty: it can.
std::string_view wished_part_problem(const FilePart& part);
// The same of an offer, in which it is the one object's, of `object_bytes`.
std::string_view offered_part_problem(const FilePart& part, uint64_t object_bytes);
// What was asked for of a file with so many bytes. kIntegrity: the file is shorter than whoever divided it
// knew.
Result<FilePart> part_of_file(const FilePart& wished, uint64_t whole_bytes);
// Is this what was asked for?
bool answers_wish(const FilePart& offered, const FilePart& wished);
// Bytes of its object: those of a range; the other two move none.
inline uint64_t part_bytes(const FilePart& part) { return is_range(part) ? part.length : 0; }

}  // namespace sluice::selection
