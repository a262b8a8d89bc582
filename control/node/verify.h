// Reading files back and comparing them with what the journal says: `sluice verify`.
//
// Each file is read on a thread of a pool in which its export has places, since its file system may hang. The
// disk is read past the page cache where the file system allows that.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "control/async/keyed_pool.h"
#include "control/exports/exports.h"
#include "control/recovery/extent_ledger.h"
#include "control/words/records.h"

namespace sluice::node {

// Of one file.
struct VerifyProgress {
  std::string file;
  uint64_t bytes_checked = 0;
  uint64_t bytes_total = 0;      // as far as the journal knows CRCs
  bool done = false;             // the last of this file
  bool good = false;             // with `done`
  std::string problem;           // with `done`, not good: what and where
  std::string digest;            // with `done`, of a whole file: hex
  uint64_t names_unchecked = 0;  // with `done`: of the session
};
// Told about each file now and then, also while nothing is read, and once with `done`; returns false to stop.
using VerifyReport = std::function<bool(const VerifyProgress&)>;

struct VerifyFile {
  std::string shown;
  std::string path;     // of the source, or final
  std::string problem;  // why it cannot be checked, if so
  recovery::Layout layout;
  bool unfinished = false;  // it has not the final name yet
  bool whole = false;       // `digest` is that of all of it; otherwise what `ledger` knows is compared
  uint64_t digest = 0;
  bool has_crc = true;           // of a name of a pack only `digests` are known
  digests::Values digests = {};  // that archives ask for, of a whole file
  recovery::ExtentLedger ledger;
};

// What can be checked of a transfer, from what the journal has of it.
struct ToVerify {
  std::vector<VerifyFile> files;
  // Names of which no digest is kept, since they travelled in packs, or which did not arrive.
  uint64_t names_unchecked = 0;
};
// kUsage: nothing.
Result<ToVerify> files_to_verify(const transfer::Saved& saved);
// Where the file of this path is read.
using VerifyPlace = std::function<async::KeyedPart(const std::string& path)>;
// Blocks, for a thread of the caller's own, on which alone `report` is called. When `report` ends it, this
// returns at once; the thread that reads returns when its file system lets it.
void verify(const std::shared_ptr<const exports::Exports>& exports,
            const std::shared_ptr<const ToVerify>& what, const VerifyPlace& place,
            const VerifyReport& report);

}  // namespace sluice::node
