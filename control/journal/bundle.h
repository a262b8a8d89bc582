// What a session takes to another node (`sluice session export`): its rows, and who may have them.
//
// Pure. A bundle comes from outside: what cannot be read is an error, whatever its bytes are. That it was
// signed, for whom, and for which content says control/grant/move.h; where its files are at the other node,
// places().
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "control/words/lease.h"
#include "control/words/records.h"
#include "dataplane/base/error.h"

namespace sluice::journal {

inline constexpr size_t kBundleBytesMax = 256U << 20;

struct MovedSession {
  transfer::SignedMove move;
  std::string content;  // MovedRows, as they were signed
};
std::string encode(const MovedSession& bundle);
// kUsage: it is none, or of another version.
Result<MovedSession> decode_bundle(const std::string& bytes);

// An export of a node, as far as paths lead into it.
struct ExportPlace {
  std::string name;
  std::string path;  // absolute

  bool operator==(const ExportPlace&) const = default;
};
struct MovedRows {
  transfer::Saved saved;
  std::vector<ExportPlace> exports;
};
std::string encode(const MovedRows& rows);
// kUsage: it says of no session that could go on.
Result<MovedRows> decode_rows(const std::string& bytes);

// Only what another node needs of a session that is at rest; the same for the same rows.
void make_portable(transfer::Saved* saved);
// Its paths, as they are where the exports of these names lie elsewhere. kOutsideExports names the path that
// lies in none, or the export that is missing.
Status place(transfer::Saved* saved, const std::vector<ExportPlace>& from,
             const std::vector<ExportPlace>& to);

}  // namespace sluice::journal
