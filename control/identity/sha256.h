// SHA-256 of some bytes (FIPS 180-4). Cold; any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace sluice::identity {

std::string sha256_of(std::string_view bytes);  // 32 bytes

}  // namespace sluice::identity
