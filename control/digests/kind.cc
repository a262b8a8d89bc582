// SPDX-License-Identifier: Apache-2.0
#include "control/digests/kind.h"

#include <algorithm>

#include "dataplane/base/text.h"

namespace sluice::digests {
namespace {

struct KindRow {
  Kind kind;
  std::string_view name;
  size_t bytes;
};
constexpr KindRow kRows[] = {{Kind::kAdler32, "adler32", 4}, {Kind::kCrc32c, "crc32c", 4},
                             {Kind::kCrc64, "crc64", 8},     {Kind::kBlake3, "blake3", 32},
                             {Kind::kMd5, "md5", 16},        {Kind::kSha1, "sha1", 20},
                             {Kind::kSha256, "sha256", 32},  {Kind::kSha512, "sha512", 64}};

const KindRow& row_of(Kind kind) { return kRows[static_cast<size_t>(kind)]; }

}  // namespace

std::string_view name_of(Kind kind) { return row_of(kind).name; }

size_t hex_digits_of(Kind kind) { return 2 * row_of(kind).bytes; }

std::optional<Kind> kind_named(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (c != '-') plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  if (plain == "sha2256" || plain == "sha2512") plain.erase(3, 1);
  const auto* const found =
      std::find_if(std::begin(kRows), std::end(kRows), [&](const KindRow& row) { return row.name == plain; });
  if (found == std::end(kRows)) return std::nullopt;
  return found->kind;
}

std::string kind_names() {
  std::string text;
  for (const KindRow& row : kRows) text += (text.empty() ? "" : ", ") + std::string(row.name);
  return text;
}

Result<std::vector<Kind>> parse_kinds(std::string_view list) {
  std::vector<Kind> kinds;
  for (size_t at = 0; at <= list.size();) {
    const size_t comma = std::min(list.find(',', at), list.size());
    const std::string_view word = list.substr(at, comma - at);
    const std::optional<Kind> kind = kind_named(word);
    if (!kind)
      return Error{ErrorCode::kUsage,
                   "'" + base::printable(word, 40) + "' is no digest; known are " + kind_names()};
    if (std::find(kinds.begin(), kinds.end(), *kind) == kinds.end()) kinds.push_back(*kind);
    at = comma + 1;
  }
  return kinds;
}

Mask mask_of(const std::vector<Kind>& kinds) {
  Mask mask = 0;
  for (const Kind kind : kinds) mask |= bit_of(kind);
  return mask;
}

std::vector<Kind> kinds_of(Mask mask) {
  std::vector<Kind> kinds;
  for (const Kind kind : kKinds) {
    if ((mask & bit_of(kind)) != 0) kinds.push_back(kind);
  }
  return kinds;
}

std::string names_of(Mask mask) {
  std::string text;
  for (const Kind kind : kinds_of(mask)) text += (text.empty() ? "" : ", ") + std::string(name_of(kind));
  return text;
}

}  // namespace sluice::digests
