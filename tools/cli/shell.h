// Words of commands that are printed for somebody to run.
//
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace sluice::cli {

// As a POSIX shell reads it back, quoted where it must be. What would steer a terminal is shown as '?'.
std::string shell_word(std::string_view word);

}  // namespace sluice::cli
