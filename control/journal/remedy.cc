// SPDX-License-Identifier: Apache-2.0
#include "control/journal/remedy.h"

#include <sqlite3.h>

#include <cerrno>

namespace sluice::journal {

std::string_view remedy(int sqlite_code, int system_errno) {
  const int primary = sqlite_code & 0xff;
  if (primary == SQLITE_FULL || system_errno == ENOSPC || system_errno == EDQUOT)
    return "free space there: what it holds is safe";
  if (primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB)
    return "move it away to begin without it (docs/RUNBOOK.md, \"The journal is lost, or damaged\")";
  if (primary == SQLITE_READONLY || primary == SQLITE_PERM || primary == SQLITE_CANTOPEN ||
      primary == SQLITE_AUTH || system_errno == EROFS || system_errno == EACCES)
    return "let sluice-control write there";
  return "check the disk";
}

}  // namespace sluice::journal
