// The journal cannot be read or written: an operator is told what to do.
//
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace sluice::journal {

// By SQLite's result code and the errno behind it (0: none). Only a file that is no journal any more is moved
// away: with it all sessions are forgotten.
std::string_view remedy(int sqlite_code, int system_errno);

}  // namespace sluice::journal
