// Control's side and that of sluice-users together, over a real socket; here both are the same user.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "control/exports/exports.h"
#include "control/users/client.h"
#include "control/users/server.h"

namespace sluice::users {
namespace {

namespace fs = std::filesystem;
using exports::DestinationFile;
using exports::Exports;

class UsersServe : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = "/tmp/sluice-users-test-XXXXXX";
    base_ = ::mkdtemp(pattern.data());
    fs::create_directories(base_ / "data");
    fs::create_directories(base_ / "mine");
    config::Export data;
    data.name = "data";
    data.path = base_ / "data";
    data.read = data.write = true;
    config::Export mine = data;  // open to one peer alone
    mine.name = "mine";
    mine.path = base_ / "mine";
    mine.peers = std::vector<config::ExportPeer>{{.name = "gamma", .mode = ""}};
    exports_ = {data, mine};
    serve();
  }
  void TearDown() override {
    ::shutdown(listener_.get(), SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
    fs::remove_all(base_);
  }

  void serve() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, (base_ / "s").c_str());
    ::unlink(address.sun_path);
    listener_.reset(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(::listen(listener_.get(), 4), 0);
    thread_ = std::thread([this] {
      while (true) {
        UniqueFd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!connection) return;
        Channel channel(std::move(connection));
        Parcel parcel;
        if (channel.receive(&parcel, std::chrono::seconds(60)) != 0) continue;
        greeted_ = uid_of_hello(parcel.bytes) ? *uid_of_hello(parcel.bytes) : 0;
        Answer answer;
        if (refuse_) answer.error = {ErrorCode::kConfiguration, "he may not"};
        if (channel.send(encode(answer), {}, std::chrono::seconds(60)) != 0 || refuse_) continue;
        users::serve(channel, {.exports = exports_}, std::chrono::seconds(60));
      }
    });
  }

  // What a session of a user with this peer has.
  Exports open(const std::string& peer = "beta") {
    return Exports::open(exports_)->for_peer(peer).for_user(client_->of(4711));
  }
  exports::DestinationSpec spec(const std::string& name, uint64_t size = 5) const {
    return {.path = (base_ / "data" / name).string(), .name = name, .size = size, .mode = 0666};
  }

  fs::path base_;
  std::vector<config::Export> exports_;
  UniqueFd listener_;
  std::thread thread_;
  std::atomic<uint32_t> greeted_ = 0;
  std::atomic<bool> refuse_ = false;
  std::unique_ptr<Client> client_;
};

class UsersServed : public UsersServe {
 protected:
  void SetUp() override {
    UsersServe::SetUp();
    client_ = std::make_unique<Client>(base_ / "s");
  }
  void TearDown() override {
    client_.reset();
    UsersServe::TearDown();
  }
};

std::string content(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_F(UsersServed, AFileIsMadeFinishedAndNamedWithoutTheRightsOfOthers) {
  {
    Result<DestinationFile> file = open().create_destination(spec("x.bin"));
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_EQ(greeted_, 4711U);
    ASSERT_EQ(::ftruncate(file->fd(), 5), 0);
    std::ofstream(base_ / "data" / ".x.bin.sluice-part") << "bytes";
    ASSERT_TRUE(file->finish());
    const Status named = file->commit();
    ASSERT_TRUE(named) << named.error().message;
    EXPECT_TRUE(file->has_name());
    const Result<bool> again = open().is_committed(file->name_path(), file->identity());
    EXPECT_TRUE(again && *again);
    ASSERT_TRUE(file->commit()) << "what was done is not done twice";
  }
  EXPECT_EQ(content(base_ / "data" / "x.bin"), "bytes");
  struct stat info {};
  ASSERT_EQ(::stat((base_ / "data" / "x.bin").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0644U);
}

TEST_F(UsersServed, WhatIsNotKeptIsRemovedAndWhatIsKeptIsFoundAgain) {
  const Exports exports = open();
  std::string name_path;
  catalog::FileIdentity identity;
  {
    Result<DestinationFile> file = exports.create_destination(spec("kept.bin"));
    ASSERT_TRUE(file);
    EXPECT_EQ(exports.create_destination(spec("kept.bin")).error().code, ErrorCode::kDestinationExists);
    name_path = file->name_path();
    identity = file->identity();
    file->keep();
  }
  exports::DestinationSpec known = spec("kept.bin");
  known.path = name_path;
  {
    Result<std::optional<DestinationFile>> found = exports.reopen_destination(known, identity, UniqueFd());
    ASSERT_TRUE(found && *found);
    catalog::FileIdentity other = identity;
    other.inode += 1;
    const Result<std::optional<DestinationFile>> none = exports.reopen_destination(known, other, UniqueFd());
    EXPECT_TRUE(!none || !none->has_value());
  }  // not kept this time
  EXPECT_FALSE(fs::exists(base_ / "data" / ".kept.bin.sluice-part"));
}

TEST_F(UsersServed, NoPathLeavesTheExportAndNoneIsOpenToAnotherPeer) {
  std::ofstream(base_ / "secret") << "s";
  std::ofstream(base_ / "data" / "x") << "x";
  std::ofstream(base_ / "mine" / "y") << "y";
  fs::create_symlink(base_ / "secret", base_ / "data" / "link");
  fs::create_directory(base_ / "data" / "folder");
  const Exports exports = open();
  EXPECT_TRUE(exports.open_source("data/x"));
  EXPECT_EQ(exports.open_source("data/../secret").error().code, ErrorCode::kOutsideExports);
  EXPECT_EQ(exports.open_source((base_ / "secret").string()).error().code, ErrorCode::kOutsideExports);
  EXPECT_EQ(exports.open_source("data/link").error().code, ErrorCode::kOutsideExports);
  EXPECT_EQ(exports.open_source("mine/y").error().code, ErrorCode::kOutsideExports);
  EXPECT_TRUE(open("gamma").open_source("mine/y"));
  const auto folder = exports.open_source("data/folder");
  EXPECT_EQ(folder.error().code, ErrorCode::kSourceUnreadable) << folder.error().message;
}

// Control is not taken at its word: it judges for itself, and so does the user's process.
TEST_F(UsersServed, TheUsersProcessJudgesByTheConfigurationItself) {
  std::ofstream(base_ / "mine" / "y") << "y";
  const auto user = client_->of(1);
  EXPECT_EQ(user->open_source("beta", (base_ / "mine" / "y").string(), false).error().code,
            ErrorCode::kOutsideExports);
  EXPECT_EQ(user->open_source("beta", "/etc/passwd", false).error().code, ErrorCode::kOutsideExports);
  EXPECT_TRUE(user->open_source("gamma", (base_ / "mine" / "y").string(), false));
}

TEST_F(UsersServed, NobodyChoosesOwners) {
  exports_[0].owners = true;
  const Exports exports = open();
  exports::DestinationSpec owned = spec("x.bin");
  owned.keep.owner = true;
  EXPECT_EQ(exports.create_destination(owned).error().code, ErrorCode::kUsage);
  EXPECT_EQ(exports.destination_path("data", owned.keep).error().code, ErrorCode::kUsage);
}

TEST_F(UsersServed, WhoIsRefusedOrFindsNobodyIsTold) {
  refuse_ = true;
  EXPECT_EQ(client_->of(4711)->there().error().message, "he may not");
  EXPECT_EQ(open().open_source("data/x").error().message, "he may not");
  const Client nobody(base_ / "nowhere");
  const Status none = nobody.of(1)->there();
  EXPECT_EQ(none.error().code, ErrorCode::kDaemonNotRunning);
  EXPECT_NE(none.error().message.find("sluice-users"), std::string::npos);
}

// All entries of a list, or why there is none.
Result<std::vector<names::Entry>> all_of(const Client& client, const names::List& asked,
                                         const std::string& peer = "") {
  const auto list = client.names_of(4711)->list(asked, peer, {});
  if (!list) return list.error();
  std::vector<names::Entry> found;
  while (true) {
    Result<names::Page> page = (*list)->next();
    if (!page) return page.error();
    if (page->entries.empty()) return found;
    found.insert(found.end(), page->entries.begin(), page->entries.end());
  }
}

TEST_F(UsersServed, NamesAreListedWhollyHoweverManyThereAre) {
  constexpr size_t kMany = 3000;  // several pages
  for (size_t i = 0; i < kMany; ++i) std::ofstream(base_ / "data" / ("name" + std::to_string(10'000 + i)));
  const auto found = all_of(*client_, {.path = "data"});
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(greeted_, 4711U);
  ASSERT_EQ(found->size(), kMany);
  EXPECT_EQ(found->back().path, "name12999");
  const auto roots = all_of(*client_, {});
  ASSERT_TRUE(roots) << roots.error().message;
  EXPECT_EQ(roots->size(), 2U);
  const auto none = all_of(*client_, {.path = "data/../mine"});
  EXPECT_FALSE(none);
  EXPECT_EQ(all_of(*client_, {.path = "data/nothing"}).error().code, ErrorCode::kSourceUnreadable);
}

TEST_F(UsersServed, ForAPeerOnlyThatIsListedWhereItMayLook) {
  EXPECT_TRUE(all_of(*client_, {.path = "mine"}));
  EXPECT_TRUE(all_of(*client_, {.path = "mine"}, "gamma"));
  EXPECT_EQ(all_of(*client_, {.path = "mine"}, "beta").error().code, ErrorCode::kOutsideExports);
}

TEST_F(UsersServed, NamesAreMadeMovedAndRemoved) {
  const auto his = client_->names_of(4711);
  exports::Pulse pulse;
  const auto made = his->change(names::MakeDirectory{.path = "data/a/b", .parents = true}, "", pulse);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_TRUE(fs::is_directory(base_ / "data/a/b"));
  ASSERT_TRUE(his->change(names::Move{.from = "data/a/b", .to = "data/c"}, "", pulse));
  EXPECT_EQ(his->change(names::MakeDirectory{.path = "data/c"}, "", pulse).error().code,
            ErrorCode::kDestinationExists);
  const auto gone = his->change(names::Remove{.path = "data/c", .recursive = true}, "", pulse);
  ASSERT_TRUE(gone) << gone.error().message;
  EXPECT_EQ(gone->entries, 1U);
  EXPECT_FALSE(fs::exists(base_ / "data/c"));
  EXPECT_FALSE(his->change(names::Remove{.path = "/etc/passwd"}, "", pulse));
}

// The work is done by another process, which sees that nobody waits any more.
TEST_F(UsersServed, AChangeThatNobodyWantsAnyMoreIsStopped) {
  fs::create_directory(base_ / "data/tree");
  for (int i = 0; i < 300; ++i) std::ofstream(base_ / "data/tree" / std::to_string(i));
  int both[2] = {};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, both), 0);
  Channel here{UniqueFd(both[0])};
  {
    Channel there{UniqueFd(both[1])};
    ASSERT_EQ(there.send(encode(Call{.kind = Kind::kNames,
                                     .file = {},
                                     .names = names::Remove{.path = "data/tree", .recursive = true}}),
                         {}, std::chrono::seconds(60)),
              0);
  }  // and hangs up
  EXPECT_FALSE(users::serve(here, {.exports = exports_}, std::chrono::seconds(60)));
  EXPECT_GT(std::distance(fs::directory_iterator(base_ / "data/tree"), {}), 0);
}

TEST_F(UsersServed, WhoMayNotIsToldSoAboutNamesToo) {
  refuse_ = true;
  exports::Pulse pulse;
  EXPECT_EQ(all_of(*client_, {.path = "data"}).error().message, "he may not");
  EXPECT_EQ(client_->names_of(4711)->change(names::Remove{.path = "data/x"}, "", pulse).error().message,
            "he may not");
  const Client nobody(base_ / "nowhere");
  EXPECT_EQ(all_of(nobody, {}).error().code, ErrorCode::kDaemonNotRunning);
}

// Stands for one who has taken the user's process over.
class Liar final : public exports::UserFiles {
 public:
  uint32_t uid() const override { return 0; }
  std::string key() const override { return "liar"; }
  explicit Liar(const fs::path& base) : base_(base) {}
  Status there() override { return {}; }
  Result<UniqueFd> open_source(const std::string&, const std::string&, bool) override {
    return UniqueFd(::open(base_.c_str(), O_RDONLY | O_DIRECTORY));
  }
  Result<Opened> create(const exports::UserFile& file, catalog::Failure*) override {
    return Opened{.fd = UniqueFd(::open("/dev/null", O_RDWR)),
                  .directory = UniqueFd(::open(base_.c_str(), O_RDONLY | O_DIRECTORY)),
                  .name_path = elsewhere ? "/etc/passwd" : file.spec.path};
  }
  Result<std::optional<Opened>> reopen(const exports::UserFile&) override {
    return std::optional<Opened>(Opened{.fd = UniqueFd(::open("/dev/zero", O_RDWR)),
                                        .directory = UniqueFd(::open("/dev/null", O_RDONLY)),
                                        .name_path = ""});
  }
  Status finish(const exports::UserFile&) override { return {}; }
  Committed commit(const exports::UserFile&) override { return {}; }
  Status drop(const exports::UserFile&) override { return {}; }
  Result<bool> is_committed(const exports::UserFile&) override { return true; }
  bool elsewhere = false;

 private:
  const fs::path base_;
};

TEST_F(UsersServed, WhatTheUsersProcessHandsOverIsLookedAt) {
  const auto liar = std::make_shared<Liar>(base_);
  const Exports exports = Exports::open(exports_)->for_peer("beta").for_user(liar);
  EXPECT_EQ(exports.open_source("data/x").error().code, ErrorCode::kInternal);
  EXPECT_EQ(exports.create_destination(spec("x")).error().code, ErrorCode::kInternal);
  liar->elsewhere = true;
  EXPECT_EQ(exports.create_destination(spec("x")).error().code, ErrorCode::kInternal);
  EXPECT_FALSE(exports.reopen_destination(spec("x"), {}, UniqueFd()));
}

}  // namespace
}  // namespace sluice::users
