// A place in a queue, in words.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace sluice::transfer {

// "3rd of 5".
std::string place_text(uint32_t place, uint32_t of);

}  // namespace sluice::transfer
