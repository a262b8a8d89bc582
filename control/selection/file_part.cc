// SPDX-License-Identifier: Apache-2.0
#include "control/selection/file_part.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "dataplane/base/text.h"

namespace sluice::selection {
namespace {

using What = FilePart::What;

constexpr uint64_t kFileEndMax = uint64_t{1} << 60;  // as catalog::kFileBytesMax
constexpr size_t kShownBytesMax = 100;

std::optional<uint64_t> number_of(std::string_view text) {
  uint64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

bool good_set(std::string_view set) {
  return set.size() == kPartSetDigits &&
         std::ranges::all_of(set, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

Error cannot_be(std::string_view text, std::string_view why) {
  return {ErrorCode::kUsage,
          fmt::format("part \"{}\": {}; write SET:OFFSET+LENGTH, SET:OFFSET+, SET:finish or SET:drop, where "
                      "SET is 32 hex digits and both numbers are whole MiB, in bytes",
                      base::printable(text, kShownBytesMax), why)};
}

}  // namespace

Result<FilePart> parse_file_part(std::string_view text) {
  if (text.empty()) return FilePart();
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos) return cannot_be(text, "has no colon");
  FilePart part{.set = std::string(text.substr(0, colon))};
  const std::string_view rest = text.substr(colon + 1);
  if (rest == "finish") {
    part.what = What::kFinish;
  } else if (rest == "drop") {
    part.what = What::kDrop;
  } else {
    part.what = What::kRange;
    const size_t plus = rest.find('+');
    const auto offset = number_of(rest.substr(0, plus));
    if (plus == std::string_view::npos || !offset) return cannot_be(text, "has no range");
    const std::string_view length = rest.substr(plus + 1);
    const auto bytes = length.empty() ? std::optional<uint64_t>(0) : number_of(length);
    if (!bytes || (*bytes == 0 && !length.empty())) return cannot_be(text, "has no length");
    part.offset = *offset;
    part.length = *bytes;
  }
  if (const std::string_view why = wished_part_problem(part); !why.empty()) return cannot_be(text, why);
  return part;
}

std::string file_part_text(const FilePart& part) {
  switch (part.what) {
    case What::kWhole:
      return "";
    case What::kFinish:
      return part.set + ":finish";
    case What::kDrop:
      return part.set + ":drop";
    case What::kRange:
      return part.length == 0 ? fmt::format("{}:{}+", part.set, part.offset)
                              : fmt::format("{}:{}+{}", part.set, part.offset, part.length);
  }
  return "";
}

std::string_view wished_part_problem(const FilePart& part) {
  if (part.what > What::kDrop) return "is of a kind that is not known here";
  if (part.what == What::kWhole) return part == FilePart() ? "" : "is of no kind";
  if (!good_set(part.set)) return "its set is not 32 hex digits (0-9, a-f)";
  if (!is_range(part)) return part.offset == 0 && part.length == 0 ? "" : "has a range, and moves none";
  if (part.offset % kPartAlignmentBytes != 0) return "does not begin at a whole MiB";
  if (part.offset >= kFileEndMax || part.length > kFileEndMax - part.offset) return "ends beyond 1 EiB";
  return "";
}

std::string_view offered_part_problem(const FilePart& part, uint64_t object_bytes) {
  if (const std::string_view why = wished_part_problem(part); !why.empty()) return why;
  if (!is_part(part)) return "";
  if (part.whole_bytes > kFileEndMax) return "is of a file beyond 1 EiB";
  if (object_bytes != part_bytes(part)) return "has another length than its object";
  if (!is_range(part)) return "";
  const uint64_t end = part.offset + part.length;
  if (part.length == 0 || end > part.whole_bytes) return "lies beyond the end of its file";
  if (end != part.whole_bytes && end % kPartAlignmentBytes != 0) return "does not end at a whole MiB";
  return "";
}

Result<FilePart> part_of_file(const FilePart& wished, uint64_t whole_bytes) {
  FilePart part = wished;
  part.whole_bytes = whole_bytes;
  if (!is_range(part)) return part;
  const bool open_ended = part.length == 0;
  if (open_ended && part.offset == 0 && whole_bytes == 0)
    return Error{ErrorCode::kUsage, "is empty, so it has no part: move it whole, without --part"};
  if (part.offset >= whole_bytes || (!open_ended && part.length > whole_bytes - part.offset))
    return Error{ErrorCode::kIntegrity,
                 fmt::format("has {} bytes, and its part is to end at byte {}: it changed since it was "
                             "divided; divide it again",
                             whole_bytes, open_ended ? part.offset + 1 : part.offset + part.length)};
  if (open_ended) part.length = whole_bytes - part.offset;
  if (const std::string_view why = offered_part_problem(part, part.length); !why.empty())
    return Error{ErrorCode::kUsage, fmt::format("its part {} {}", file_part_text(part), why)};
  return part;
}

bool answers_wish(const FilePart& offered, const FilePart& wished) {
  FilePart expected = wished;
  expected.whole_bytes = offered.whole_bytes;
  if (is_range(wished) && wished.length == 0) {
    expected.length = offered.length;
    if (offered.offset + offered.length != offered.whole_bytes) return false;
  }
  return offered == expected;
}

}  // namespace sluice::selection
