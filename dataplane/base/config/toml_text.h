// TOML text to a table: the one place that calls the parser, for node.toml and for trusted/NAME.toml.
// SPDX-License-Identifier: Apache-2.0
#pragma once

// With exceptions, which are caught where they arise: without, the parser of toml++ 3.3 goes on after an
// error and runs into its own assertions.
#define TOML_EXCEPTIONS 1
#include <toml++/toml.h>

#include <string_view>

#include "dataplane/base/error.h"

namespace sluice::config {

// kConfiguration with "ORIGIN:LINE: not valid TOML: ..." on one line. At most 1 MiB.
Result<toml::table> parse_toml(std::string_view text, std::string_view origin);

}  // namespace sluice::config
