// SPDX-License-Identifier: Apache-2.0
#include "control/journal/journal.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

namespace sluice::journal {
namespace {

namespace fs = std::filesystem;
using recovery::BlockId;

class JournalTest : public testing::Test {
 protected:
  JournalTest() {
    std::string name = fs::temp_directory_path() / "sluice-journal-XXXXXX";
    directory_ = ::mkdtemp(name.data());
    path_ = directory_ / "journal.sqlite";
  }
  ~JournalTest() override { fs::remove_all(directory_); }

  std::unique_ptr<Journal> open() {
    auto journal = Journal::open(path_);
    EXPECT_TRUE(journal) << journal.error().message;
    return journal ? std::move(*journal) : nullptr;
  }
  static SessionRecord session(const std::string& id, int64_t started,
                               SessionRecord::State state = SessionRecord::ACTIVE) {
    SessionRecord record;
    record.set_id(id);
    record.set_started_unix_ns(started);
    record.set_state(state);
    return record;
  }

  fs::path directory_;
  fs::path path_;
};

TEST_F(JournalTest, KeepsWhatWasWritten) {
  {
    auto journal = open();
    Batch batch;
    batch.sessions = {session("b", 2), session("a", 1)};
    batch.files.push_back({"a", 0, {}});
    batch.files[0].record.set_name(std::string("na\0me", 5));
    batch.blocks.push_back({"a", 0, {{BlockId(7), std::string("\0\1\2", 3)}, {BlockId(3), "x"}}});
    ASSERT_TRUE(journal->write(batch, Durability::kPower));
    ASSERT_TRUE(journal->write({.blocks = {{"a", 0, {{BlockId(3), "y"}}}}}, Durability::kProcess));
  }
  auto journal = open();
  const auto sessions = journal->sessions();
  ASSERT_TRUE(sessions);
  ASSERT_EQ(sessions->size(), 2U);
  EXPECT_EQ((*sessions)[0].id(), "a");
  EXPECT_EQ((*journal->session("b"))->started_unix_ns(), 2);
  EXPECT_FALSE(journal->session("c")->has_value());
  const auto files = journal->files("a");
  ASSERT_TRUE(files);
  EXPECT_EQ(files->at(0).record.name(), std::string("na\0me", 5));
  const auto blocks = journal->blocks("a", 0);
  ASSERT_TRUE(blocks);
  ASSERT_EQ(blocks->size(), 2U);
  EXPECT_EQ((*blocks)[0].id, BlockId(3));
  EXPECT_EQ((*blocks)[0].bytes, "y");
  EXPECT_EQ((*blocks)[1].bytes, std::string("\0\1\2", 3));
}

TEST_F(JournalTest, AProcessThatIsKilledLosesNothingThatWasWritten) {
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto journal = Journal::open(path_);
    const bool good = journal && (*journal)->write({.sessions = {session("a", 1)}}, Durability::kProcess);
    if (::write(pipe[1], good ? "y" : "n", 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  char byte = 'x';
  ASSERT_EQ(::read(pipe[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'y');
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  const auto sessions = open()->sessions();
  ASSERT_TRUE(sessions);
  EXPECT_EQ(sessions->size(), 1U);
}

TEST_F(JournalTest, AnEndedSessionDropsItsBlocksAndTheOldestAreForgotten) {
  auto journal = open();
  for (int i = 0; i < 10; ++i) {
    const std::string id(1, static_cast<char>('a' + i));
    Batch batch;
    batch.sessions = {session(id, i, i < 8 ? SessionRecord::SUCCEEDED : SessionRecord::PAUSED)};
    batch.files.push_back({id, 0, {}});
    batch.blocks.push_back({id, 0, {{BlockId(0), "x"}}});
    batch.blocks.push_back({id, 1, {{BlockId(0), "x"}}});
    ASSERT_TRUE(journal->write(batch, Durability::kProcess));
  }
  ASSERT_TRUE(journal->write({.end = {"h"}, .restart = {{"g", 1}}}, Durability::kProcess));
  EXPECT_TRUE(journal->blocks("h", 0)->empty());
  EXPECT_EQ(journal->blocks("g", 0)->size(), 1U);
  EXPECT_TRUE(journal->blocks("g", 1)->empty());
  ASSERT_TRUE(journal->forget_ended(3));
  const auto sessions = journal->sessions();
  ASSERT_TRUE(sessions);
  ASSERT_EQ(sessions->size(), 5U);
  EXPECT_EQ((*sessions)[0].id(), "f");
  EXPECT_TRUE(journal->files("a")->empty());
  EXPECT_TRUE(journal->blocks("a", 0)->empty());
}

TEST_F(JournalTest, SomethingElseIsRefusedAndLeftAlone) {
  std::ofstream(path_) << "this is no database, but it is long enough to look like one: "
                       << std::string(5000, 'x');
  const auto size = fs::file_size(path_);
  const auto journal = Journal::open(path_);
  ASSERT_FALSE(journal);
  EXPECT_EQ(journal.error().code, ErrorCode::kStorage);
  EXPECT_NE(journal.error().message.find(path_.string()), std::string::npos);
  EXPECT_EQ(fs::file_size(path_), size);
  EXPECT_FALSE(Journal::open(directory_ / "missing" / "journal.sqlite"));
}

TEST_F(JournalTest, IsForItsOwnerOnly) {
  open();
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

}  // namespace
}  // namespace sluice::journal
