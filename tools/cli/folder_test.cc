// The parts of `sluice watch`: what it sees, what it removes, and what becomes of its sessions.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

#include "tools/cli/cli_fixture_for_test.h"
#include "tools/cli/folder_eyes.h"
#include "tools/cli/folder_hands.h"
#include "tools/cli/folder_sender.h"
#include "tools/cli/when.h"

namespace sluice::cli {
namespace {

using Done = Folder::Done;
using WatchedNames = std::vector<std::string>;

class FolderTest : public CliTest {
 protected:
  void SetUp() override {
    CliTest::SetUp();
    std::filesystem::create_directories(path_ / "sub");
    auto folder = Folder::open(path_);
    ASSERT_TRUE(folder) << folder.error().message;
    folder_.emplace(std::move(*folder));
  }
  void write(const std::string& name, const std::string& text = "x") const {
    std::ofstream(path_ / name) << text;
  }

  const std::filesystem::path path_ = control_.directory / "watched";
  std::optional<Folder> folder_;
};

TEST_F(FolderTest, OnlyTheVeryFileThatWasSentIsRemoved) {
  write("sub/a");
  const auto sent = folder_->look("sub/a");
  ASSERT_TRUE(sent);
  write("sub/a", "longer");
  EXPECT_EQ(*folder_->remove("sub/a", *sent), Done::kChanged);
  EXPECT_TRUE(std::filesystem::exists(path_ / "sub/a"));
  EXPECT_EQ(*folder_->remove("sub/a", *folder_->look("sub/a")), Done::kDone);
  EXPECT_EQ(*folder_->remove("sub/a", *sent), Done::kGone);
  EXPECT_FALSE(folder_->look("sub")) << "a directory is no file";
}

TEST_F(FolderTest, NothingIsReachedThroughALink) {
  const std::filesystem::path outside = control_.directory / "outside";
  std::filesystem::create_directory(outside);
  std::ofstream(outside / "a") << "x";
  const auto sent = Folder::open(outside)->look("a");
  std::filesystem::create_directory_symlink(outside, path_ / "link");
  std::filesystem::create_symlink(outside / "a", path_ / "a");
  for (const char* name : {"a", "link/a", "../outside/a"}) {
    EXPECT_FALSE(folder_->look(name)) << name;
    EXPECT_NE(*folder_->remove(name, *sent), Done::kDone) << name;
  }
  EXPECT_TRUE(std::filesystem::exists(outside / "a"));
  EXPECT_TRUE(std::filesystem::is_symlink(path_ / "a"));
}

TEST_F(FolderTest, WhatIsMovedKeepsItsPathAndReplacesNothing) {
  const std::filesystem::path place = control_.directory / "place";
  std::filesystem::create_directory(place);
  const auto to = Folder::open(place);
  write("sub/a", "first");
  EXPECT_EQ(*folder_->move("sub/a", *folder_->look("sub/a"), *to), Done::kDone);
  EXPECT_TRUE(std::filesystem::exists(place / "sub/a"));
  write("sub/a", "second");
  const auto refused = folder_->move("sub/a", *folder_->look("sub/a"), *to);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kDestinationExists);
  EXPECT_TRUE(std::filesystem::exists(path_ / "sub/a"));
}

TEST_F(FolderTest, AFileThatSomebodyWritesIsKnownAsSuch) {
  write("a");
  EXPECT_NE(folder_->writer("a"), base::Writer::kSome);
  const UniqueFd held(::open((path_ / "a").c_str(), O_WRONLY | O_CLOEXEC));
  EXPECT_NE(folder_->writer("a"), base::Writer::kNone);
}

TEST_F(FolderTest, WhatHappensIsSeenAlsoInDirectoriesThatCome) {
  FolderEyes eyes(*folder_, 0);
  ASSERT_TRUE(eyes.open());
  std::set<std::string> there;
  const auto on_file = [&there](const std::string& name, const struct stat&) { there.insert(name); };
  write("sub/before");
  write(".hidden");
  ASSERT_TRUE(eyes.look("", on_file));
  EXPECT_EQ(there, std::set<std::string>{"sub/before"});
  write("sub/after");
  std::filesystem::create_directory(path_ / "new");
  write("new/a");
  std::filesystem::rename(path_ / "sub/before", path_ / "moved");
  std::map<std::string, bool> changes;
  WatchedNames directories;
  while (!changes.contains("moved")) {
    pollfd news{.fd = eyes.fd(), .events = POLLIN, .revents = 0};
    ASSERT_EQ(::poll(&news, 1, 60'000), 1);
    const FolderEyes::News read = eyes.read();
    EXPECT_FALSE(read.lost);
    for (const FolderEyes::Change& change : read.changes) changes[change.name] = change.closed;
    directories.insert(directories.end(), read.directories.begin(), read.directories.end());
  }
  EXPECT_EQ(changes, (std::map<std::string, bool>{{"sub/after", true}, {"moved", true}}));
  EXPECT_EQ(directories, WatchedNames{"new"});
  there.clear();
  ASSERT_TRUE(eyes.look("new", on_file));
  EXPECT_EQ(there, std::set<std::string>{"new/a"});
  write("new/b");
  pollfd news{.fd = eyes.fd(), .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&news, 1, 60'000), 1);
  EXPECT_EQ(eyes.read().changes.at(0).name, "new/b");
}

class SenderTest : public FolderTest {
 protected:
  void SetUp() override {
    FolderTest::SetUp();
    environment_.default_node = control_.directory;
    environment_.working_directory = "/w";
    make();
  }
  // As after a restart, with what was written.
  void make() {
    files_ = {};
    files_.read(written_);
    FolderSender::Options options{.request = {}, .folder = path_, .receipts = {}, .quiet = false};
    options.request.add_sources(path_.string() + "/");
    options.request.set_peer("b");
    options.request.set_destination("in");
    sender_ = std::make_unique<FolderSender>(context_, std::move(options), files_, [this] {
      written_ += files_.take_lines();
      return Status();
    });
  }
  void begin(const WatchedNames& names) {
    unattended::SentFiles::Files files;
    for (const std::string& name : names)
      files.emplace_back(name, unattended::FileId{.inode = files.size() + 1});
    const Status status = sender_->begin(files, 0);
    EXPECT_TRUE(status) << status.error().message;
    id_ = files_.batches().rbegin()->second.session;
  }
  void session_is(const std::string& id, api::Session::State state, ErrorCode code = ErrorCode::kOk) {
    control_.on_io([&] {
      control_.sessions.sessions[id].set_state(state);
      control_.sessions.sessions[id].set_error_code(static_cast<uint32_t>(code));
    });
  }
  FolderSender::Ended look(int64_t now_ns) {
    const auto ended = sender_->look(now_ns);
    EXPECT_TRUE(ended);
    return ended ? *ended : FolderSender::Ended();
  }

  std::ostringstream out_, err_;
  Environment environment_{out_, err_};
  Context context_{environment_};
  unattended::SentFiles files_;
  std::string written_;
  std::string id_;  // of the session that was asked for last
  std::unique_ptr<FolderSender> sender_;
};

TEST_F(SenderTest, ASessionThatSucceedsBringsAllOfItsFiles) {
  sessions_are(api::Session::TRANSFERRING);
  begin({"a", "sub/b"});
  control_.on_io([this] {
    EXPECT_EQ(control_.sessions.last_send->options().names_size(), 2);
    EXPECT_EQ(control_.sessions.last_send->options().names(1), "sub/b");
  });
  EXPECT_TRUE(look(1).arrived.empty());
  session_is(id_, api::Session::SUCCEEDED);
  EXPECT_EQ(look(2).arrived, (WatchedNames{"a", "sub/b"}));
  EXPECT_TRUE(files_.batches().empty());
  EXPECT_NE(out_.str().find("2 files arrived"), std::string::npos) << out_.str();
}

TEST_F(SenderTest, NamesThatAreMissingAreGivenBackUnlessTheSessionDoesNotNameThem) {
  for (const uint64_t failed : {1U, 2U}) {
    sessions_are(api::Session::SUCCEEDED, ErrorCode::kPartial, "one is missing");
    control_.on_io([&] {
      control_.sessions.prototype.mutable_names()->set_failed(failed);
      control_.sessions.prototype.mutable_names()->clear_missing();
      control_.sessions.prototype.mutable_names()->add_missing()->set_path("b");
    });
    begin({"a", "b"});
    const FolderSender::Ended ended = look(1);
    EXPECT_EQ(ended.arrived, failed == 1 ? WatchedNames{"a"} : WatchedNames());
    EXPECT_EQ(ended.failed, failed == 1 ? WatchedNames{"b"} : (WatchedNames{"a", "b"}));
    for (const std::string& name : ended.arrived) files_.forget(name);
  }
}

TEST_F(SenderTest, WhatAnErrorHoldsUpIsContinuedAfterAWait) {
  sessions_are(api::Session::PAUSED, ErrorCode::kNoSpace, "full");
  begin({"a"});
  look(0);
  const int64_t due_ns = sender_->next_ns();
  EXPECT_EQ(due_ns, 5 * unattended::kOneSecondNs);
  look(due_ns - 1);
  control_.on_io([this] { EXPECT_EQ(control_.sessions.sessions[id_].state(), api::Session::PAUSED); });
  look(due_ns);
  control_.on_io([this] { EXPECT_EQ(control_.sessions.sessions[id_].state(), api::Session::TRANSFERRING); });
  session_is(id_, api::Session::PAUSED, ErrorCode::kNoSpace);  // again, and nothing has moved
  look(due_ns + 1);
  EXPECT_EQ(sender_->next_ns(), due_ns + 1 + 10 * unattended::kOneSecondNs) << "twice as long";
  EXPECT_EQ(files_.standing("a", {.inode = 1}), unattended::SentFiles::Standing::kUnderWay);
}

TEST_F(SenderTest, ARestartGoesOnWithTheSessionThatWasAskedFor) {
  sessions_are(api::Session::TRANSFERRING);
  begin({"a"});
  EXPECT_EQ(id_.size(), 32U);
  make();
  ASSERT_EQ(files_.batches().size(), 1U);
  EXPECT_TRUE(look(1).failed.empty());
  EXPECT_TRUE(sender_->follows(id_));
  session_is(id_, api::Session::SUCCEEDED);
  EXPECT_EQ(look(2).arrived, WatchedNames{"a"});
}

TEST_F(SenderTest, WhatNoSessionWasMadeOfIsFreeAgainAfterAWhile) {
  sessions_are(api::Session::TRANSFERRING);
  begin({"a"});
  control_.on_io([this] { control_.sessions.sessions.clear(); });
  make();
  EXPECT_TRUE(look(0).failed.empty()) << "a call of before may be on its way";
  EXPECT_EQ(look(60 * unattended::kOneSecondNs).failed, WatchedNames{"a"});
}

// The node died before it had begun the first one: what became of the second says nothing of its files.
TEST_F(SenderTest, OneSessionIsNotTakenForAnother) {
  sessions_are(api::Session::SUCCEEDED);
  begin({"old"});
  control_.on_io([this] { control_.sessions.sessions.clear(); });
  make();
  begin({"new"});
  EXPECT_EQ(look(0).arrived, WatchedNames{"new"});
  const FolderSender::Ended ended = look(60 * unattended::kOneSecondNs);
  EXPECT_TRUE(ended.arrived.empty());
  EXPECT_EQ(ended.failed, WatchedNames{"old"});
}

TEST_F(SenderTest, ASessionThatIsRefusedLeavesItsFilesFree) {
  control_.on_io([this] { control_.sessions.refusal = Error{ErrorCode::kQuota, "too much"}; });
  const Status status = sender_->begin({{"a", {.inode = 1}}}, 0);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kQuota);
  EXPECT_EQ(files_.standing("a", {.inode = 1}), unattended::SentFiles::Standing::kNew);
}

}  // namespace
}  // namespace sluice::cli
