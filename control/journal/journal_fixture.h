// A folder with a journal in it, for the journal's tests; and what is in its file, past the journal.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <stdlib.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "control/journal/journal.h"
#include "control/journal/records_for_test.h"

namespace sluice::journal {

// A session with two files, each of two blocks.
inline transfer::Batch two_files(const std::string& id, int64_t started,
                                 transfer::RecordState state = transfer::RecordState::kActive) {
  transfer::Batch batch{.record = sample_record(id, started)};
  batch.record->state = state;
  for (uint32_t i = 0; i < 2; ++i) {
    batch.files.push_back({.file = catalog::FileId(i), .record = sample_file("file" + std::to_string(i))});
    batch.blocks.push_back({.object = ObjectId(i),
                            .blocks = {{recovery::BlockId(7), "seven"}, {recovery::BlockId(3), "three"}}});
  }
  return batch;
}

inline std::vector<std::string> ids_in(Journal& journal) {
  std::vector<std::string> found;
  const auto sessions = journal.sessions();
  EXPECT_TRUE(sessions);
  if (sessions) {
    for (const transfer::Record& record : *sessions) found.push_back(record.id);
  }
  return found;
}

class JournalTest : public testing::Test {
 protected:
  JournalTest() {
    std::string name = std::filesystem::temp_directory_path() / "sluice-journal-XXXXXX";
    directory_ = ::mkdtemp(name.data());
    path_ = directory_ / "journal.sqlite";
  }
  ~JournalTest() override { std::filesystem::remove_all(directory_); }

  std::unique_ptr<Journal> open() const { return open(path_); }
  static std::unique_ptr<Journal> open(const std::filesystem::path& path) {
    auto journal = Journal::open(path);
    EXPECT_TRUE(journal) << journal.error().message;
    return journal ? std::move(*journal) : nullptr;
  }

  // While no journal has it open: it would be locked.
  void sql(const std::string& statements) const {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &db), SQLITE_OK);
    char* error = nullptr;
    sqlite3_exec(db, statements.c_str(), nullptr, nullptr, &error);
    EXPECT_EQ(error, nullptr) << error;
    sqlite3_free(error);
    sqlite3_close(db);
  }
  // All values of a question, one after the other.
  std::string ask(const std::string& question) const {
    sqlite3* db = nullptr;
    EXPECT_EQ(sqlite3_open(path_.c_str(), &db), SQLITE_OK);
    std::string answer;
    const auto add = [](void* to, int columns, char** values, char**) {
      for (int i = 0; i < columns; ++i)
        static_cast<std::string*>(to)->append(values[i] == nullptr ? "NULL" : values[i]).append(" ");
      return 0;
    };
    EXPECT_EQ(sqlite3_exec(db, question.c_str(), add, &answer, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
    sqlite3_close(db);
    return answer;
  }
  // Every row there is.
  std::string rows() const {
    return ask("SELECT id,state,started,hex(record),hex(request) FROM session") +
           ask("SELECT session,object,hex(record) FROM file") +
           ask("SELECT session,object,block,hex(content) FROM block");
  }
  // What an operator reads of a file that cannot be used: which, why, and what to do.
  void expect_refused(const Error& error, const std::string& reason,
                      const std::string& remedy = "move") const {
    EXPECT_EQ(error.code, ErrorCode::kStorage);
    EXPECT_NE(error.message.find("journal " + path_.string() + ": "), std::string::npos) << error.message;
    EXPECT_NE(error.message.find(reason), std::string::npos) << error.message;
    EXPECT_NE(error.message.find(remedy), std::string::npos) << error.message;
    EXPECT_EQ(error.message.find('\n'), std::string::npos) << error.message;
  }

  std::filesystem::path directory_;
  std::filesystem::path path_;
};

}  // namespace sluice::journal
