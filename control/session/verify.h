// Reading files back and comparing them with what the journal says: `sluice verify`.
//
// Blocking; on a thread of the caller's own, since a file may take hours. The disk is read past the page
// cache where the file system allows that. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "control/exports/exports.h"
#include "control/proto/api.pb.h"
#include "control/recovery/extent_ledger.h"

namespace sluice::control {

struct VerifyFile {
  std::string shown;
  std::string path;     // of the file that is read: final, source, or unfinished
  std::string problem;  // why it cannot be checked, if so
  recovery::Layout layout;
  bool whole = false;  // `digest` is that of all of it; otherwise what `ledger` knows is compared
  uint64_t digest = 0;
  recovery::ExtentLedger ledger;
};

void verify(const exports::Exports& exports, const std::vector<VerifyFile>& files,
            const std::function<bool(const api::VerifyProgress&)>& report);

}  // namespace sluice::control
