// Digests in messages to the peer, in packs, and in records of the journal.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "control/digests/named.h"
#include "control/proto/digests.pb.h"

namespace sluice::peer {

inline void put_digests(const digests::Values& from, google::protobuf::RepeatedPtrField<Digest>* to) {
  const auto digit = [](char c) { return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10); };
  for (const digests::Value& value : from) {
    Digest* const one = to->Add();
    one->set_kind(static_cast<uint32_t>(value.kind) + 1);
    std::string* const bytes = one->mutable_value();
    for (size_t at = 0; at + 1 < value.hex.size(); at += 2)
      bytes->push_back(static_cast<char>(digit(value.hex[at]) << 4 | digit(value.hex[at + 1])));
  }
}

// Without those of a kind that is not known here, or that have not the bytes of their kind; each kind once.
inline digests::Values digests_of(const google::protobuf::RepeatedPtrField<Digest>& from) {
  constexpr char kDigits[] = "0123456789abcdef";
  digests::Values values;
  digests::Mask seen = 0;
  for (const Digest& one : from) {
    if (one.kind() == 0 || one.kind() > digests::kKinds.size()) continue;
    digests::Value value{.kind = digests::kKinds[one.kind() - 1], .hex = {}};
    if (2 * one.value().size() != digests::hex_digits_of(value.kind) || (seen & bit_of(value.kind)) != 0)
      continue;
    for (const char byte : one.value()) {
      value.hex += kDigits[static_cast<unsigned char>(byte) >> 4];
      value.hex += kDigits[static_cast<unsigned char>(byte) & 15];
    }
    seen |= bit_of(value.kind);
    values.push_back(std::move(value));
  }
  return values;
}

inline void put_named(const digests::Named& from, NamedDigests* to) {
  to->set_path(from.path);
  to->set_size(from.size_bytes);
  to->set_target(from.target);
  put_digests(from.values, to->mutable_digests());
}

inline digests::Named named_of(const NamedDigests& from) {
  return {.path = from.path(),
          .size_bytes = from.size(),
          .target = from.target(),
          .values = digests_of(from.digests())};
}

}  // namespace sluice::peer
