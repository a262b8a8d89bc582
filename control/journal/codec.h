// Rows of the journal, and what they mean (control/words/records.h). Reads what earlier versions wrote.
//
// Pure; both ways. A row may come from a damaged or edited file: what cannot be read gives nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "control/proto/file_rows.h"
#include "control/words/records.h"

namespace sluice::journal {

std::string encode(const transfer::Record& record);  // without its request
std::string encode(const transfer::Request& request);

// `request`: of its own column; empty: there is none, or it stands in the record of an earlier version.
std::optional<transfer::Record> decode_record(const std::string& record, const std::string& request);

}  // namespace sluice::journal
