// Files of a transfer as rows of the journal have them, and messages to processes of users (control/users).
//
// Pure; both ways. A row may come from a damaged or edited file: what cannot be read gives nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "control/catalog/catalog.h"

namespace sluice::journal {

std::string encode(const catalog::File& file);
std::optional<catalog::File> decode_file(const std::string& bytes);

}  // namespace sluice::journal
