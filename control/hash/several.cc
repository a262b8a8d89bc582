// SPDX-License-Identifier: Apache-2.0
#include "control/hash/several.h"

namespace sluice::digests {

Result<Several> Several::begin(Mask kinds) {
  Several several;
  for (const Kind kind : kinds_of(kinds)) {
    auto digest = begin_digest(kind);
    if (!digest) return digest.error();
    several.all_.push_back({.kind = kind, .digest = std::move(*digest)});
  }
  return several;
}

void Several::add(const void* data, size_t bytes) {
  for (const One& one : all_) one.digest->add(data, bytes);
}

void Several::add_zeros(uint64_t bytes) {
  for (const One& one : all_) one.digest->add_zeros(bytes);
}

Values Several::values() {
  Values values;
  for (const One& one : all_) values.push_back({.kind = one.kind, .hex = one.digest->hex()});
  return values;
}

Result<Values> compute(Mask kinds, const void* data, size_t bytes) {
  Result<Several> several = Several::begin(kinds);
  if (!several) return several.error();
  several->add(data, bytes);
  return several->values();
}

Mask available() {
  Mask mask = 0;
  for (const Kind kind : kKinds) mask |= begin_digest(kind) ? bit_of(kind) : 0;
  return mask;
}

Status check_kinds(Mask kinds) {
  const Result<Several> several = Several::begin(kinds);
  return several ? Status() : Status(several.error());
}

}  // namespace sluice::digests
