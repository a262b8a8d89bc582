// The library's Error with the code and the name of a product's.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "dataplane/base/error.h"
#include "tools/cpp/include/sluice/client.h"

namespace sluice::client {

inline Error error(ErrorCode code, const std::string& message) {
  return {static_cast<int>(code), std::string(error_code_name(code)), message};
}

}  // namespace sluice::client
