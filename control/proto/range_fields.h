// A part of a file, in messages and records (docs/WIRE.md 2.17).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "control/proto/ranges.pb.h"
#include "control/selection/file_part.h"

namespace sluice::peer {

inline int hex_value(char digit) { return digit <= '9' ? digit - '0' : digit - 'a' + 10; }

// Of a whole file the message has no field.
inline void put_part(const selection::FilePart& from, auto* message) {
  if (!selection::is_part(from)) return;
  FilePart* const to = message->mutable_part();
  to->set_what(static_cast<FilePart::What>(from.what));
  std::string set;
  for (size_t i = 0; i + 1 < from.set.size(); i += 2)
    set.push_back(static_cast<char>(16 * hex_value(from.set[i]) + hex_value(from.set[i + 1])));
  to->set_set(set);
  to->set_offset(from.offset);
  to->set_length(from.length);
  to->set_whole_bytes(from.whole_bytes);
}

// What cannot be stays as it is: whoever takes it judges it (selection::offered_part_problem).
inline selection::FilePart part_of(const auto& message) {
  if (!message.has_part()) return {};
  const FilePart& from = message.part();
  constexpr char kDigits[] = "0123456789abcdef";
  selection::FilePart to{
      .what = static_cast<selection::FilePart::What>(std::min(static_cast<uint32_t>(from.what()), 255U)),
      .offset = from.offset(),
      .length = from.length(),
      .whole_bytes = from.whole_bytes()};
  for (const char byte : from.set().substr(0, selection::kPartSetDigits)) {
    to.set.push_back(kDigits[static_cast<unsigned char>(byte) >> 4]);
    to.set.push_back(kDigits[static_cast<unsigned char>(byte) & 15]);
  }
  return to;
}

inline std::optional<uint64_t> whole_digest_of(const auto& message) {
  return message.has_whole_digest() ? std::optional<uint64_t>(message.whole_digest()) : std::nullopt;
}

}  // namespace sluice::peer
