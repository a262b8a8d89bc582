// SPDX-License-Identifier: Apache-2.0
#include "control/words/place_text.h"

#include <fmt/format.h>

namespace sluice::transfer {

std::string place_text(uint32_t place, uint32_t of) {
  const uint32_t tens = place / 10 % 10;
  const uint32_t ones = place % 10;
  const char* const ending = tens == 1 || ones == 0 || ones > 3 ? "th"
                             : ones == 1                        ? "st"
                             : ones == 2                        ? "nd"
                                                                : "rd";
  return fmt::format("{}{} of {}", place, ending, of);
}

}  // namespace sluice::transfer
