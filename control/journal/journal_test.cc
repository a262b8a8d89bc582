// What a journal keeps, what a transaction changes, and what is refused. Crashes: journal_crash_test.cc.
// SPDX-License-Identifier: Apache-2.0
#include "control/journal/journal.h"

#include <fstream>

#include "control/journal/journal_fixture.h"
#include "control/journal/records_for_test.h"

namespace sluice::journal {
namespace {

namespace fs = std::filesystem;
using catalog::FileId;
using recovery::Block;
using recovery::BlockId;
using transfer::Batch;
using transfer::Durability;
using transfer::RecordState;
using transfer::Saved;

Saved saved(Journal& journal, const std::string& id) {
  const auto all = journal.saved(id, true);
  EXPECT_TRUE(all) << all.error().message;
  EXPECT_TRUE(!all || all->has_value());
  return all && *all ? **all : Saved();
}

// The contents of an object's blocks, in order.
std::string blocks_of(const Saved& saved, uint32_t object) {
  std::string all;
  for (const Block& block : saved.blocks[ObjectId(object)]) all += block.bytes + " ";
  return all;
}

TEST_F(JournalTest, KeepsWhatWasWritten) {
  const Batch batch = two_files("a", 1);
  {
    auto journal = open();
    ASSERT_TRUE(journal->write("c", two_files("c", 2), Durability::kPower));
    ASSERT_TRUE(journal->write("b", two_files("b", 2), Durability::kPower));
    ASSERT_TRUE(journal->write("a", batch, Durability::kProcess));
  }
  auto journal = open();
  EXPECT_EQ(ids_in(*journal), (std::vector<std::string>{"a", "b", "c"})) << "oldest first";
  const Saved all = saved(*journal, "a");
  EXPECT_TRUE(fields::equal(all.record, *batch.record));
  ASSERT_EQ(all.files.size(), 2U);
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(fields::equal(all.files[i], batch.files[i].record));
  ASSERT_EQ(all.blocks.size(), 2U);
  EXPECT_EQ(blocks_of(all, 0), "three seven ");
  EXPECT_EQ(all.blocks[ObjectId(1)][0].id, BlockId(3));
  EXPECT_EQ(all.blocks[ObjectId(1)][1].id, BlockId(7));

  const auto without = journal->saved("a", false);
  ASSERT_TRUE(without && *without);
  EXPECT_EQ((*without)->files.size(), 2U);
  ASSERT_EQ((*without)->blocks.size(), 2U);
  EXPECT_TRUE((*without)->blocks[ObjectId(0)].empty());
  EXPECT_TRUE(fields::equal(**journal->session("a"), *batch.record));
  EXPECT_FALSE(journal->session("d")->has_value());
  EXPECT_FALSE(journal->saved("d", true)->has_value());
}

TEST_F(JournalTest, ARecordIsReplacedAndKeepsItsRequestWhenItComesWithoutOne) {
  auto journal = open();
  ASSERT_TRUE(journal->write("a", two_files("a", 1), Durability::kProcess));
  transfer::Record record = sample_record("a", 2);
  record.state = RecordState::kCancelled;
  record.error.reset();
  record.request.reset();
  record.legs.resize(1);
  ASSERT_TRUE(journal->write("a", {.record = record}, Durability::kProcess));
  record.request = sample_request();
  Saved all = saved(*journal, "a");
  EXPECT_TRUE(fields::equal(all.record, record));
  EXPECT_EQ(all.files.size(), 2U) << "files stay";
  EXPECT_EQ(blocks_of(all, 0), "three seven ");
  record.request->destination = "elsewhere";
  ASSERT_TRUE(journal->write("a", {.record = record}, Durability::kProcess));
  EXPECT_TRUE(fields::equal(saved(*journal, "a").record, record));
}

TEST_F(JournalTest, FilesAndBlocksAreAddedOrReplaced) {
  auto journal = open();
  ASSERT_TRUE(journal->write("a", two_files("a", 1), Durability::kProcess));
  Batch batch;
  batch.files = {{FileId(1), sample_file("other")}, {FileId(2), sample_file("third")}};
  batch.blocks = {{ObjectId(1), {{BlockId(3), "new"}, {BlockId(~0ULL >> 1), "last"}}},
                  {ObjectId(2), {{BlockId(0), "first"}}}};
  ASSERT_TRUE(journal->write("a", batch, Durability::kProcess));
  const Saved all = saved(*journal, "a");
  ASSERT_EQ(all.files.size(), 3U);
  EXPECT_EQ(all.files[0].name, "file0");
  EXPECT_EQ(all.files[1].name, "other");
  EXPECT_EQ(all.files[2].name, "third");
  EXPECT_EQ(blocks_of(all, 0), "three seven ");
  EXPECT_EQ(blocks_of(all, 1), "new seven last ");
  EXPECT_EQ(blocks_of(all, 2), "first ");
}

TEST_F(JournalTest, RestartDropsTheBlocksOfItsObjectsBeforeNewOnesCome) {
  auto journal = open();
  ASSERT_TRUE(journal->write("a", two_files("a", 1), Durability::kProcess));
  ASSERT_TRUE(journal->write("b", two_files("b", 1), Durability::kProcess));
  ASSERT_TRUE(journal->write("a",
                             {.blocks = {{ObjectId(1), {{BlockId(0), "new"}}}}, .restart = {ObjectId(1)}},
                             Durability::kProcess));
  EXPECT_EQ(blocks_of(saved(*journal, "a"), 0), "three seven ");
  EXPECT_EQ(blocks_of(saved(*journal, "a"), 1), "new ");
  ASSERT_TRUE(journal->write("a", {.restart = {ObjectId(0), ObjectId(1)}}, Durability::kProcess));
  EXPECT_EQ(blocks_of(saved(*journal, "a"), 0) + blocks_of(saved(*journal, "a"), 1), "");
  EXPECT_EQ(blocks_of(saved(*journal, "b"), 1), "three seven ") << "another session's stay";
}

TEST_F(JournalTest, AnEndedSessionDropsItsBlocksAndAForgottenOneItsFilesAsWell) {
  auto journal = open();
  for (const char* id : {"a", "b", "c"})
    ASSERT_TRUE(journal->write(id, two_files(id, 1), Durability::kProcess));
  ASSERT_TRUE(journal->write("a", {.drop_blocks = true}, Durability::kProcess));
  EXPECT_EQ(saved(*journal, "a").files.size(), 2U);
  EXPECT_EQ(blocks_of(saved(*journal, "a"), 0) + blocks_of(saved(*journal, "a"), 1), "");

  ASSERT_TRUE(journal->write("b", {.drop_blocks = true, .drop_files = true}, Durability::kProcess));
  EXPECT_TRUE(saved(*journal, "b").files.empty());
  const Saved other = saved(*journal, "c");
  EXPECT_EQ(other.files.size(), 2U);
  EXPECT_EQ(blocks_of(other, 0), "three seven ");

  // What comes in the same transaction is what there is afterwards.
  ASSERT_TRUE(journal->write("c",
                             {.files = {{FileId(0), sample_file("new")}},
                              .blocks = {{ObjectId(0), {{BlockId(1), "one"}}}},
                              .drop_blocks = true,
                              .drop_files = true},
                             Durability::kProcess));
  const Saved anew = saved(*journal, "c");
  ASSERT_EQ(anew.files.size(), 1U);
  EXPECT_EQ(anew.files[0].name, "new");
  EXPECT_EQ(blocks_of(anew, 0), "one ");
}

TEST_F(JournalTest, WhatFailsInTheMiddleLeavesNothing) {
  open();
  sql("CREATE TRIGGER refuse BEFORE INSERT ON block WHEN NEW.content=CAST('refused' AS BLOB) "
      "BEGIN SELECT RAISE(ABORT, 'no room'); END");
  auto journal = open();
  ASSERT_TRUE(journal->write("a", two_files("a", 1), Durability::kProcess));
  Batch batch = two_files("a", 2);
  batch.record->state = RecordState::kFailed;
  batch.files[0].record.name = "other";
  batch.files.push_back({FileId(2), sample_file("third")});
  batch.drop_blocks = batch.drop_files = true;
  batch.blocks[1].blocks.push_back({BlockId(9), "refused"});
  const Status status = journal->write("a", batch, Durability::kPower);
  ASSERT_FALSE(status);
  expect_refused(status.error(), "no room", "check the disk");
  const Saved all = saved(*journal, "a");
  EXPECT_TRUE(fields::equal(all.record, *two_files("a", 1).record));
  ASSERT_EQ(all.files.size(), 2U);
  EXPECT_EQ(all.files[0].name, "file0");
  EXPECT_EQ(blocks_of(all, 1), "three seven ");
  batch.blocks[1].blocks.pop_back();
  ASSERT_TRUE(journal->write("a", batch, Durability::kProcess)) << "and it goes on";
  EXPECT_EQ(saved(*journal, "a").record.state, RecordState::kFailed);
}

// ---- what is refused ---------------------------------------------------------------------------

class DamagedJournalTest : public JournalTest {
 protected:
  DamagedJournalTest() {
    auto journal = open();
    EXPECT_TRUE(journal->write("a", two_files("a", 1), Durability::kProcess));
    EXPECT_TRUE(journal->write("b", two_files("b", 2), Durability::kProcess));
  }
  // Reading says what is damaged; the file stays as it is.
  void expect_damaged(const std::string& how, const std::string& what) {
    sql(how);
    const std::string before = rows();
    {
      auto journal = open();
      const auto read = journal->saved("a", true);
      ASSERT_FALSE(read) << how;
      expect_refused(read.error(), what + " cannot be read: the file is damaged");
      const bool in_session = what == "session a";
      EXPECT_EQ(static_cast<bool>(journal->sessions()), !in_session) << "none is left out in silence";
      EXPECT_EQ(static_cast<bool>(journal->session("a")), !in_session);
      EXPECT_EQ(blocks_of(saved(*journal, "b"), 0), "three seven ") << "others can be read";
    }
    EXPECT_EQ(rows(), before);
  }
};

TEST_F(DamagedJournalTest, ARecordThatIsNone) {
  expect_damaged("UPDATE session SET record=x'ffff' WHERE id='a'", "session a");
}

TEST_F(DamagedJournalTest, ARecordOfAnotherSession) {
  expect_damaged("UPDATE session SET record=(SELECT record FROM session WHERE id='b') WHERE id='a'",
                 "session a");
}

TEST_F(DamagedJournalTest, ARequestThatIsNone) {
  expect_damaged("UPDATE session SET request=x'ffff' WHERE id='a'", "session a");
}

TEST_F(DamagedJournalTest, ARequestThatIsGone) {
  expect_damaged("UPDATE session SET request=NULL WHERE id='a'", "session a");
}

TEST_F(DamagedJournalTest, AFileThatIsNone) {
  expect_damaged("UPDATE file SET record=x'ffff' WHERE session='a' AND object=1", "file 1 of session a");
}

TEST_F(DamagedJournalTest, AFileThatIsMissing) {
  expect_damaged("DELETE FROM file WHERE session='a' AND object=0", "file 1 of session a");
}

TEST_F(DamagedJournalTest, ABlockOfNoFile) {
  expect_damaged("UPDATE block SET object=2 WHERE session='a' AND object=1", "a block of session a");
}

TEST_F(DamagedJournalTest, ABlockOfAFileWhoseNumberIsTooLarge) {
  expect_damaged("INSERT INTO block VALUES('a', 4294967296, 1, 'x')", "a block of session a");
}

TEST_F(DamagedJournalTest, AnIdOfControlCharactersIsShownWithoutThem) {
  sql("UPDATE session SET id='x'||char(10)||'y' WHERE id='a'");
  const auto sessions = open()->sessions();
  ASSERT_FALSE(sessions);
  expect_refused(sessions.error(), "session x?y cannot be read");
}

TEST_F(JournalTest, SomethingElseIsRefusedAndLeftAlone) {
  std::ofstream(path_) << "this is no database, but it is long enough to look like one: "
                       << std::string(5000, 'x');
  const auto size = fs::file_size(path_);
  const auto journal = Journal::open(path_);
  ASSERT_FALSE(journal);
  expect_refused(journal.error(), "not a database");
  EXPECT_EQ(fs::file_size(path_), size);
  EXPECT_FALSE(Journal::open(directory_ / "missing" / "journal.sqlite"));
}

TEST_F(JournalTest, AnotherProgramsDatabaseIsRefusedAndLeftAlone) {
  sql("CREATE TABLE theirs(x); INSERT INTO theirs VALUES(5); PRAGMA user_version=2");
  const auto journal = Journal::open(path_);
  ASSERT_FALSE(journal);
  expect_refused(journal.error(), "another program's database");
  EXPECT_EQ(ask("SELECT x FROM theirs"), "5 ");
}

TEST_F(JournalTest, ALaterVersionIsRefusedAndLeftAlone) {
  ASSERT_TRUE(open()->write("a", two_files("a", 1), Durability::kPower));
  for (const char* version : {"4", "0"}) {
    sql(std::string("PRAGMA user_version=") + version);
    const std::string before = rows();
    const auto journal = Journal::open(path_);
    ASSERT_FALSE(journal);
    expect_refused(journal.error(), std::string("has version ") + version + ", this sluice-control reads 3");
    EXPECT_NE(journal.error().message.find("run the version that wrote it"), std::string::npos);
    EXPECT_EQ(rows(), before);
    EXPECT_EQ(ask("PRAGMA user_version"), std::string(version) + " ");
  }
  sql("PRAGMA user_version=3");
  EXPECT_EQ(blocks_of(saved(*open(), "a"), 0), "three seven ");
}

TEST_F(JournalTest, AnEpochNeverGoesDown) {
  const transfer::LeaseRow low{
      .lease = {.name = "0123456789abcdef", .epoch = 3}, .holder = "beta", .used_unix_ns = 7};
  transfer::LeaseRow high = low;
  high.lease.epoch = 1ULL << 62;
  high.holder = "";
  {
    auto journal = open();
    for (const transfer::LeaseRow& row : {low, high, low}) ASSERT_TRUE(journal->write(row));
  }
  auto journal = open();
  const auto rows = journal->leases();
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_EQ(*rows, std::vector{high});
  ASSERT_TRUE(journal->forget_leases({"0123456789abcdef", "of nobody"}));
  EXPECT_TRUE(journal->leases()->empty());
}

TEST_F(JournalTest, ALeaseThatCannotBeIsDamage) {
  open();
  sql("INSERT INTO lease VALUES('short',1,'beta',1)");
  const auto rows = open()->leases();
  ASSERT_FALSE(rows);
  expect_refused(rows.error(), "a lease cannot be read");
}

TEST_F(JournalTest, KnowsWhetherItStandsWhereItBelongs) {
  auto journal = Journal::open(path_);
  ASSERT_TRUE(journal);
  EXPECT_TRUE((*journal)->stands());
  const std::filesystem::path aside = directory_ / "aside";
  std::filesystem::rename(path_, aside);
  EXPECT_FALSE((*journal)->stands()) << "nothing is there";
  std::ofstream(path_) << "another";
  EXPECT_FALSE((*journal)->stands()) << "another file is there";
  std::filesystem::rename(aside, path_);
  EXPECT_TRUE((*journal)->stands());
}

TEST_F(JournalTest, IsForItsOwnerOnly) {
  open();
  EXPECT_EQ(fs::status(path_).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

}  // namespace
}  // namespace sluice::journal
