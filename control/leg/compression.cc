// SPDX-License-Identifier: Apache-2.0
#include "control/leg/compression.h"

#include "control/words/terms.h"

namespace sluice::transfer {

using options::Compress;

AbilitySet want_compression(AbilitySet abilities, Compress compress) {
  abilities.set(Ability::kZstd, compress != Compress::kOff);
  abilities.set(Ability::kCompressDemanded, compress == Compress::kZstd);
  return abilities;
}

AbilitySet without_compression(AbilitySet abilities) { return want_compression(abilities, Compress::kOff); }

Status check_compression(AbilitySet agreed, bool demanded) {
  if (!demanded || agreed.has(Ability::kZstd)) return {};
  return incompatible(
      "the peer cannot restore what --compress zstd compresses: use --compress auto or off, or upgrade the "
      "peer");
}

board::Compress compress_of(AbilitySet abilities) {
  if (!abilities.has(Ability::kZstd)) return board::Compress::kOff;
  return abilities.has(Ability::kCompressDemanded) ? board::Compress::kAlways : board::Compress::kWhereItPays;
}

std::string_view compress_name(AbilitySet abilities) {
  switch (compress_of(abilities)) {
    case board::Compress::kOff:
      return options::word_of(Compress::kOff);
    case board::Compress::kWhereItPays:
      return options::word_of(Compress::kAuto);
    case board::Compress::kAlways:
      return options::word_of(Compress::kZstd);
  }
  return "";
}

}  // namespace sluice::transfer
