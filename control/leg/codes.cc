// SPDX-License-Identifier: Apache-2.0
#include "control/leg/codes.h"

#include <fmt/format.h>

#include "dataplane/board/codes.h"

namespace sluice::transfer {
namespace {

using options::Fec;

struct AbilityOfCode {
  Ability ability;
  uint8_t bit;
};
constexpr AbilityOfCode kAbilityOfCode[] = {{Ability::kReedSolomon, board::kCodeReedSolomon},
                                            {Ability::kRaptorQ, board::kCodeRaptorQ}};

uint8_t codes_allowed(Fec fec) {
  switch (fec) {
    case Fec::kOff:
      return 0;
    case Fec::kAuto:
      return board::kCodesKnown;
    case Fec::kReedSolomon:
      return board::kCodeReedSolomon;
    case Fec::kRaptorQ:
      return board::kCodeRaptorQ;
  }
  return 0;
}

}  // namespace

bool demands_code(Fec fec) { return fec == Fec::kReedSolomon || fec == Fec::kRaptorQ; }

Result<AbilitySet> want_codes(AbilitySet abilities, Fec fec, uint32_t codes_here) {
  const uint32_t codes = codes_allowed(fec) & codes_here;
  const bool demanded = demands_code(fec);
  if (demanded && codes == 0) {
    return Error{
        ErrorCode::kConfiguration,
        fmt::format("fec = {}: this node's sluice-dataplane was built without that erasure code: use "
                    "auto, or build it in",
                    options::word_of(fec))};
  }
  abilities.set(Ability::kParityDemanded, demanded);
  return with_codes_here(abilities, codes);
}

AbilitySet with_codes_here(AbilitySet abilities, uint32_t codes_here) {
  for (const AbilityOfCode& code : kAbilityOfCode) {
    if ((codes_here & code.bit) == 0) abilities.set(code.ability, false);
  }
  return abilities;
}

Status check_codes(AbilitySet agreed, bool demanded) {
  if (!demanded || codes_of(agreed) != 0) return {};
  return incompatible(
      "one of the nodes does not have the erasure code that --fec demands: use --fec auto or off, or upgrade "
      "it");
}

uint8_t codes_of(AbilitySet abilities) {
  uint8_t codes = 0;
  for (const AbilityOfCode& code : kAbilityOfCode) {
    if (abilities.has(code.ability)) codes |= code.bit;
  }
  return codes;
}

std::string_view fec_name(AbilitySet abilities) {
  const uint8_t codes = codes_of(abilities);
  if (codes == 0) return options::word_of(Fec::kOff);
  if (!abilities.has(Ability::kParityDemanded)) return options::word_of(Fec::kAuto);
  return options::word_of((codes & board::kCodeReedSolomon) != 0 ? Fec::kReedSolomon : Fec::kRaptorQ);
}

}  // namespace sluice::transfer
