// What is there after a crash: of the process, and of the machine.
//
// A loss of power is played on copies: of the file and its log as they were when they were last synced, and
// of a log that ends anywhere.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>

#include "control/journal/journal_fixture.h"
#include "control/journal/records_for_test.h"

namespace {
std::function<void()>* g_on_sync = nullptr;  // SQLite calls what stands below
}

// Stands before the C library's, for SQLite as well: it is linked into the program itself.
extern "C" int fdatasync(int fd) {
  const auto result = static_cast<int>(::syscall(SYS_fdatasync, fd));
  if (g_on_sync != nullptr) (*g_on_sync)();
  return result;
}
extern "C" int fsync(int fd) {
  const auto result = static_cast<int>(::syscall(SYS_fsync, fd));
  if (g_on_sync != nullptr) (*g_on_sync)();
  return result;
}

namespace sluice::journal {
namespace {

namespace fs = std::filesystem;
using catalog::FileId;
using recovery::BlockId;
using transfer::Batch;
using transfer::Durability;

// Transaction `n`: the session, a file and many blocks, all of which tell its number.
Batch numbered(uint64_t n) {
  Batch batch{.record = sample_record("a", 1), .drop_blocks = true};
  batch.record->summary.chunks = n;
  batch.files.push_back({.file = FileId(0), .record = sample_file(std::to_string(n))});
  batch.blocks.push_back({.object = ObjectId(0)});
  for (uint64_t i = 0; i < 40; ++i)
    batch.blocks[0].blocks.push_back({BlockId(n + i), std::string(500, static_cast<char>('a' + n % 26))});
  return batch;
}

// The number of the transaction after which a journal is; 0: before the first. It is whole in any case.
uint64_t number_of(Journal& journal) {
  const auto all = journal.saved("a", true);
  EXPECT_TRUE(all) << all.error().message;
  if (!all || !*all) return 0;
  const transfer::Saved& saved = **all;
  const uint64_t n = saved.record.summary.chunks;
  const Batch whole = numbered(n);
  EXPECT_TRUE(fields::equal(saved.record, *whole.record));
  EXPECT_EQ(saved.files.size(), 1U);
  if (saved.files.size() == 1) {
    EXPECT_EQ(saved.files[0].name, std::to_string(n));
    EXPECT_TRUE(fields::equal(saved.blocks[ObjectId(0)], whole.blocks[0].blocks));
  }
  return n;
}

class JournalCrashTest : public JournalTest {
 protected:
  fs::path log() const { return path_.string() + "-wal"; }
  // The file and its log, as they are now, for another journal.
  fs::path copy(const std::string& name) const {
    const fs::path to = directory_ / name;
    fs::copy_file(path_, to, fs::copy_options::overwrite_existing);
    fs::remove(to.string() + "-wal");
    if (fs::exists(log())) fs::copy_file(log(), to.string() + "-wal");
    return to;
  }
};

TEST_F(JournalCrashTest, AProcessThatIsKilledLosesNothingThatWasWritten) {
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    auto journal = Journal::open(path_);
    const bool good = journal && (*journal)->write("a", numbered(1), Durability::kProcess);
    if (::write(pipe[1], good ? "y" : "n", 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  char byte = 'x';
  ASSERT_EQ(::read(pipe[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'y');
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  ::close(pipe[0]);
  ::close(pipe[1]);
  EXPECT_EQ(number_of(*open()), 1U);
}

// It is killed while it writes: after some transaction that it told of, and maybe within the next.
TEST_F(JournalCrashTest, AProcessThatIsKilledAnywhereLeavesWholeTransactions) {
  for (const uint64_t told : {1, 2, 5, 9}) {
    int pipe[2];
    ASSERT_EQ(::pipe(pipe), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto journal = Journal::open(path_);
      if (!journal) ::_exit(1);
      for (uint64_t n = 1;; ++n) {
        if (!(*journal)->write("a", numbered(n), Durability::kProcess)) ::_exit(1);
        if (::write(pipe[1], &n, sizeof n) != sizeof n) ::_exit(1);
      }
    }
    ::close(pipe[1]);
    uint64_t n = 0;
    while (n < told) ASSERT_EQ(::read(pipe[0], &n, sizeof n), static_cast<ssize_t>(sizeof n));
    ::kill(child, SIGKILL);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    ::close(pipe[0]);
    EXPECT_GE(number_of(*open()), told);
    fs::remove(path_);
    fs::remove(log());
  }
}

TEST_F(JournalCrashTest, WhatWasWrittenForPowerIsInWhatWasSynced) {
  auto journal = open();
  uint64_t syncs = 0;
  // What a disk is sure to have: of everything, what was there when something was last synced.
  std::function<void()> on_sync = [&] {
    ++syncs;
    (void)copy("synced");
  };
  g_on_sync = &on_sync;
  const auto write = [&](uint64_t n, Durability durability) {
    const uint64_t before = syncs;
    EXPECT_TRUE(journal->write("a", numbered(n), durability));
    return syncs - before;
  };
  EXPECT_GE(write(1, Durability::kPower), 1U);
  EXPECT_EQ(write(2, Durability::kProcess), 0U) << "a sync that nobody asked for";
  EXPECT_EQ(write(3, Durability::kProcess), 0U);
  EXPECT_EQ(number_of(*open(directory_ / "synced")), 1U);
  EXPECT_GE(write(4, Durability::kPower), 1U);
  g_on_sync = nullptr;
  EXPECT_EQ(number_of(*open(directory_ / "synced")), 4U) << "with all that came before it";
}

TEST_F(JournalCrashTest, ALogThatEndsAnywhereGivesTheFirstTransactionsAndNoPart) {
  auto journal = open();
  for (uint64_t n = 1; n <= 3; ++n) ASSERT_TRUE(journal->write("a", numbered(n), Durability::kProcess));
  const fs::path torn = copy("torn");
  std::string whole(fs::file_size(log()), '\0');
  std::ifstream(log(), std::ios::binary).read(whole.data(), static_cast<std::streamsize>(whole.size()));
  ASSERT_TRUE(fs::exists(torn));
  const std::string empty_file = directory_ / "begin";
  fs::copy_file(torn, empty_file);
  uint64_t last = 0;
  // A step that is no part of a page, so that cuts fall everywhere in one.
  for (size_t cut = 0; cut <= whole.size();
       cut += cut + 1021 > whole.size() && cut < whole.size() ? whole.size() - cut : 1021) {
    fs::copy_file(empty_file, torn, fs::copy_options::overwrite_existing);
    std::ofstream(torn.string() + "-wal", std::ios::binary)
        .write(whole.data(), static_cast<std::streamsize>(cut));
    auto opened = Journal::open(torn);
    ASSERT_TRUE(opened) << cut << ": " << opened.error().message;
    const uint64_t n = number_of(**opened);
    EXPECT_GE(n, last) << cut;
    last = n;
  }
  EXPECT_EQ(last, 3U);
}

}  // namespace
}  // namespace sluice::journal
