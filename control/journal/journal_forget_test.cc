// Which sessions a journal forgets, and that it is read however large it is.
// SPDX-License-Identifier: Apache-2.0
#include <sys/resource.h>

#include "control/journal/journal.h"
#include "control/journal/journal_fixture.h"
#include "control/journal/records_for_test.h"

namespace sluice::journal {
namespace {

using catalog::FileId;
using recovery::BlockId;
using transfer::Batch;
using transfer::Durability;
using transfer::RecordState;

// It is over: nothing is left of it, and nobody waits to hear of it.
Batch over(const std::string& id, int64_t started, uint64_t elapsed_ns = 0,
           RecordState state = RecordState::kSucceeded) {
  Batch batch = two_files(id, started, state);
  batch.record->files_left = false;
  for (transfer::LegRecord& leg : batch.record->legs) leg.peer_unaware = false;
  batch.record->summary.elapsed_ns = elapsed_ns;
  return batch;
}

constexpr int64_t kAnyTime = INT64_MAX;

TEST_F(JournalTest, TheOldestEndedSessionsAreForgotten) {
  auto journal = open();
  for (int i = 0; i < 10; ++i) {
    const std::string id(1, static_cast<char>('a' + i));
    const RecordState state = i == 1   ? RecordState::kActive
                              : i == 2 ? RecordState::kPaused
                                       : static_cast<RecordState>(2 + i % 3);
    ASSERT_TRUE(journal->write(id, over(id, i, 0, state), Durability::kProcess));
  }
  ASSERT_TRUE(journal->forget_ended(3, kAnyTime));
  EXPECT_EQ(ids_in(*journal), (std::vector<std::string>{"b", "c", "h", "i", "j"})) << "none that goes on";
  EXPECT_EQ((*journal->saved("b", true))->blocks[ObjectId(1)].size(), 2U) << "with all that it has";
  ASSERT_TRUE(journal->forget_ended(3, kAnyTime));
  EXPECT_EQ(ids_in(*journal).size(), 5U);
  journal.reset();
  EXPECT_EQ(ask("SELECT count(*) FROM file"), "10 ");
  EXPECT_EQ(ask("SELECT count(*) FROM block"), "20 ");
}

TEST_F(JournalTest, WhatEndedOfLateIsKeptHoweverManyThereAre) {
  auto journal = open();
  ASSERT_TRUE(journal->write("a", over("a", 1), Durability::kProcess));
  ASSERT_TRUE(journal->write("b", over("b", 2, 98), Durability::kProcess)) << "it ended at 100";
  for (const auto& [id, started] : {std::pair("c", 99), std::pair("d", 101), std::pair("e", 102)})
    ASSERT_TRUE(journal->write(id, over(id, started), Durability::kProcess));
  ASSERT_TRUE(journal->forget_ended(1, 100));
  EXPECT_EQ(ids_in(*journal), (std::vector<std::string>{"b", "d", "e"}));
}

TEST_F(JournalTest, WhoLeftFilesOrHasAPeerThatDoesNotKnowIsNotForgotten) {
  auto journal = open();
  Batch left = over("left", 1);
  left.record->files_left = true;
  Batch unaware = over("unaware", 2);
  unaware.record->legs.back().peer_unaware = true;
  ASSERT_TRUE(journal->write("left", left, Durability::kPower));
  ASSERT_TRUE(journal->write("unaware", unaware, Durability::kPower));
  ASSERT_TRUE(journal->write("over", over("over", 3), Durability::kPower));
  ASSERT_TRUE(journal->forget_ended(0, kAnyTime));
  EXPECT_EQ(ids_in(*journal), (std::vector<std::string>{"left", "unaware"}));
}

// As in its sandbox. SQLite would put what it sorts into one as soon as that is larger than its cache.
TEST_F(JournalTest, ALargeJournalIsReadWithoutATemporaryFile) {
  constexpr int kSessions = 150;
  auto journal = open();
  transfer::Batch batch = over("", 0);
  batch.record->error = Error{ErrorCode::kStorage, std::string(100'000, 'x')};
  for (int i = 0; i < kSessions; ++i) {
    batch.record->id = std::to_string(1000 + i);
    ASSERT_TRUE(journal->write(batch.record->id, {.record = batch.record}, Durability::kProcess));
  }
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const struct rlimit none { .rlim_cur = 0, .rlim_max = before.rlim_max };
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto found = journal->sessions();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->size(), static_cast<size_t>(kSessions));
}

TEST_F(JournalTest, SoManyAreForgottenAtOnceTheOldestFirst) {
  auto journal = open();
  transfer::Batch batch = over("", 0);
  batch.files.clear();
  batch.blocks.clear();
  const auto number = [](size_t i) { return std::to_string(1'000'000 + i); };
  for (size_t i = 0; i < Journal::kForgottenAtOnce + 3; ++i) {
    batch.record->id = number(i);
    batch.record->started_unix_ns = static_cast<int64_t>(i);
    ASSERT_TRUE(journal->write(number(i), batch, Durability::kProcess));
  }
  ASSERT_TRUE(journal->forget_ended(1, kAnyTime));
  EXPECT_EQ(ids_in(*journal).size(), 3U);
  EXPECT_EQ(ids_in(*journal).front(), number(Journal::kForgottenAtOnce));
  ASSERT_TRUE(journal->forget_ended(1, kAnyTime));
  EXPECT_EQ(ids_in(*journal).size(), 1U);
}

}  // namespace
}  // namespace sluice::journal
