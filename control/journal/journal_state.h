// The journal's database, and its statements: what the files of class Journal share. Included by them alone.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sqlite3.h>
#include <sys/types.h>

#include <mutex>
#include <optional>
#include <string>

#include "control/journal/checkpointer.h"
#include "control/journal/journal.h"
#include "control/journal/remedy.h"

namespace sluice::journal {

struct Journal::State {
  std::filesystem::path path;
  sqlite3* db = nullptr;
  dev_t device = 0;  // of the open file
  ino_t inode = 0;
  std::mutex mutex;
  transfer::Durability durability = transfer::Durability::kPower;
  std::optional<Checkpointer> checkpointer;

  ~State() {
    checkpointer.reset();  // it uses the database
    sqlite3_close_v2(db);
  }

  Error error(const std::string& what) const {
    return {ErrorCode::kStorage,
            "journal " + path.string() + ": " + what + ": " + sqlite3_errmsg(db) + "; " +
                std::string(remedy(sqlite3_extended_errcode(db), sqlite3_system_errno(db)))};
  }
  Status run(const char* sql) const {
    if (sqlite3_exec(db, sql, nullptr, nullptr, nullptr) != SQLITE_OK) return error("writing");
    return {};
  }
  Result<int> number(const char* pragma) const;
  Status set_up();
  Status upgrade(int version);
  Status prepare(transfer::Durability wanted);
  void start_checkpoints();
  Result<std::optional<transfer::Record>> session(const std::string& id) const;
  Status forget(const std::string& id);
};

// A prepared statement; parameters are bound from 1 on.
class Statement {
 public:
  Statement(sqlite3* db, const char* sql) {
    ok_ = sqlite3_prepare_v2(db, sql, -1, &statement_, nullptr) == SQLITE_OK;
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& text(int at, const std::string& value) {
    ok_ = ok_ && sqlite3_bind_text(statement_, at, value.data(), static_cast<int>(value.size()),
                                   SQLITE_TRANSIENT) == SQLITE_OK;
    return *this;
  }
  Statement& blob(int at, const std::string& value) {
    ok_ = ok_ && sqlite3_bind_blob(statement_, at, value.data(), static_cast<int>(value.size()),
                                   SQLITE_TRANSIENT) == SQLITE_OK;
    return *this;
  }
  Statement& number(int at, int64_t value) {
    ok_ = ok_ && sqlite3_bind_int64(statement_, at, value) == SQLITE_OK;
    return *this;
  }
  // True while there is a row; afterwards failed() tells whether that was the end.
  bool row() {
    const int result = ok_ ? sqlite3_step(statement_) : SQLITE_ERROR;
    ok_ = result == SQLITE_ROW || result == SQLITE_DONE;
    return result == SQLITE_ROW;
  }
  bool run() {
    while (row()) {
    }
    const bool done = ok_;
    if (statement_ != nullptr) sqlite3_reset(statement_);
    return done;
  }
  bool failed() const { return !ok_; }
  int64_t number(int column) const { return sqlite3_column_int64(statement_, column); }
  std::string bytes(int column) const {
    const void* data = sqlite3_column_blob(statement_, column);
    const int size = sqlite3_column_bytes(statement_, column);
    return data == nullptr ? "" : std::string(static_cast<const char*>(data), static_cast<size_t>(size));
  }

 private:
  sqlite3_stmt* statement_ = nullptr;
  bool ok_ = false;
};

inline Error damaged(const std::filesystem::path& path, std::string what) {
  for (char& c : what)
    c = static_cast<unsigned char>(c) < ' ' || c == 0x7F ? '?' : c;  // a name from the file
  return {ErrorCode::kStorage, "journal " + path.string() + ": " + what +
                                   " cannot be read: the file is damaged; move it away to begin without it "
                                   "(unfinished sessions start anew)"};
}

}  // namespace sluice::journal
