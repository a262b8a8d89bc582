// SPDX-License-Identifier: Apache-2.0
#include "control/journal/remedy.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cerrno>

namespace sluice::journal {
namespace {

TEST(Remedy, OnAFullDiskNobodyIsToldToMoveTheSessionsAway) {
  EXPECT_EQ(remedy(SQLITE_FULL, 0), "free space there: what it holds is safe");
  EXPECT_EQ(remedy(SQLITE_IOERR_WRITE, ENOSPC), remedy(SQLITE_FULL, 0));
  EXPECT_EQ(remedy(SQLITE_IOERR_SHMSIZE, EDQUOT), remedy(SQLITE_FULL, 0));
}

TEST(Remedy, OnlyWhatIsNoJournalIsMovedAway) {
  EXPECT_NE(remedy(SQLITE_CORRUPT, 0).find("move it away"), std::string_view::npos);
  EXPECT_NE(remedy(SQLITE_NOTADB, 0).find("move it away"), std::string_view::npos);
  for (const int code : {SQLITE_IOERR, SQLITE_IOERR_FSYNC, SQLITE_READONLY, SQLITE_CANTOPEN, SQLITE_BUSY})
    EXPECT_EQ(remedy(code, EIO).find("move"), std::string_view::npos) << code;
}

}  // namespace
}  // namespace sluice::journal
