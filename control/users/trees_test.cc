// Trees and packs by processes of a user, over real sockets; here both sides are the same user. Each
// connection has a thread, where sluice-users has a process.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>
#include <vector>

#include "control/exports/exports.h"
#include "control/exports/temporary.h"
#include "control/gather/packs.h"
#include "control/gather/preview.h"
#include "control/gather/sources.h"
#include "control/users/client.h"
#include "control/users/server.h"

namespace sluice::users {
namespace {

namespace fs = std::filesystem;
using exports::Exports;

constexpr mode_t kMask = 027;

class UsersTrees : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = "/tmp/sluice-trees-test-XXXXXX";
    base_ = ::mkdtemp(pattern.data());
    for (const char* name : {"from", "into", "read"}) {
      fs::create_directories(base_ / name);
      config::Export one;
      one.name = name;
      one.path = base_ / name;
      one.read = true;
      one.write = std::string(name) != "read";
      exports_.push_back(one);
    }
    listen();
    client_ = std::make_unique<Client>(base_ / "s");
  }
  void TearDown() override {
    client_.reset();
    ::shutdown(listener_.get(), SHUT_RDWR);
    accepts_.join();
    cut();
    for (std::thread& each : serving_) each.join();
    fs::remove_all(base_);
  }

  void listen() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, (base_ / "s").c_str());
    listener_.reset(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(::listen(listener_.get(), 16), 0);
    accepts_ = std::thread([this] {
      while (true) {
        UniqueFd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (!connection) return;
        const std::scoped_lock lock(mutex_);
        open_.emplace_back(::fcntl(connection.get(), F_DUPFD_CLOEXEC, 0));
        serving_.emplace_back([this, fd = std::make_shared<UniqueFd>(std::move(connection))] {
          Channel channel(std::move(*fd));
          Parcel parcel;
          if (channel.receive(&parcel, std::chrono::seconds(60)) != 0) return;
          if (channel.send(encode(Answer()), {}, std::chrono::seconds(60)) != 0) return;
          users::serve(channel, {.exports = exports_, .umask = kMask}, std::chrono::seconds(60));
        });
      }
    });
  }
  // All processes of the user have gone.
  void cut() {
    const std::scoped_lock lock(mutex_);
    for (const UniqueFd& each : open_) ::shutdown(each.get(), SHUT_RDWR);
    open_.clear();
  }

  Exports open() const { return Exports::open(exports_)->for_peer("beta").for_user(client_->of(4711)); }
  Exports plain() const { return Exports::open(exports_)->for_peer("beta"); }

  void plant(size_t files) const {
    for (size_t i = 0; i < files; ++i) {
      const fs::path directory = base_ / "from" / "tree" / std::to_string(i % 10);
      fs::create_directories(directory);
      std::ofstream(directory / ("f" + std::to_string(i))) << "bytes of " << i;
    }
  }
  std::vector<catalog::File> listed(const Exports& exports) const {
    const auto found = gather::open_sources(exports, {"from/tree"}, {});
    EXPECT_TRUE(found) << found.error().message;
    return found ? found->files : std::vector<catalog::File>();
  }
  // As the destination has a pack that a source has listed.
  catalog::File arriving(const catalog::File& pack) const {
    catalog::File file = pack;
    file.path = (base_ / "into").string();
    return file;
  }

  fs::path base_;
  std::vector<config::Export> exports_;
  UniqueFd listener_;
  std::thread accepts_;
  std::mutex mutex_;
  std::vector<UniqueFd> open_;
  std::vector<std::thread> serving_;
  std::unique_ptr<Client> client_;
};

std::string bytes_in(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_F(UsersTrees, ATreeIsListedAsTheNodeItselfWouldListIt) {
  plant(3000);
  std::ofstream(base_ / "from" / "tree" / "large") << std::string(3 << 20, 'x');
  const std::vector<catalog::File> his = listed(open());
  const std::vector<catalog::File> ours = listed(plain());
  ASSERT_EQ(his.size(), ours.size());
  ASSERT_GE(his.size(), 3U) << "packs, the large file, and the last pack";
  for (size_t i = 0; i < his.size(); ++i) {
    EXPECT_EQ(his[i].name, ours[i].name);
    EXPECT_EQ(his[i].size_bytes, ours[i].size_bytes);
    EXPECT_EQ(his[i].pack.members, ours[i].pack.members);
    EXPECT_EQ(his[i].pack.list ? *his[i].pack.list : "", ours[i].pack.list ? *ours[i].pack.list : "");
  }
}

TEST_F(UsersTrees, PartsComeWhileTheListIsMade) {
  plant(5000);
  struct Sink final : gather::SourceSink {
    Status go_on() override { return stop ? Status(Error{ErrorCode::kCancelled, "enough"}) : Status(); }
    Status take(gather::OpenSources part) override {
      files += part.files.size();
      return {};
    }
    size_t files = 0;
    bool stop = false;
  } sink;
  const auto rest = gather::open_sources(open(), {"from/tree"}, {}, &sink);
  ASSERT_TRUE(rest) << rest.error().message;
  EXPECT_GT(sink.files, 0U);
  EXPECT_EQ(sink.files + rest->files.size(), listed(plain()).size());
  sink.stop = true;
  EXPECT_EQ(gather::open_sources(open(), {"from/tree"}, {}, &sink).error().code, ErrorCode::kCancelled);
}

TEST_F(UsersTrees, WhatIsWrongWithAPathIsSaidAsWithoutAUser) {
  EXPECT_EQ(gather::open_sources(open(), {"from/nothing"}, {}).error().message,
            gather::open_sources(plain(), {"from/nothing"}, {}).error().message);
  EXPECT_FALSE(gather::open_sources(open(), {"/etc"}, {}));
  EXPECT_EQ(open().destination_path("read", {}).error().code, ErrorCode::kOutsideExports);
  EXPECT_EQ(open().destination_path("into/none", {}).error().code, ErrorCode::kStorage);
  EXPECT_EQ(open().destination_path("into", {.owner = true}).error().code, ErrorCode::kOutsideExports);
}

TEST_F(UsersTrees, APackIsFilledStagedAndNamed) {
  plant(500);
  fs::permissions(base_ / "from" / "tree" / "3" / "f3", fs::perms(0666));
  const std::vector<catalog::File> files = listed(open());
  ASSERT_EQ(files.size(), 2U);
  for (size_t i = 0; i < files.size(); ++i) {
    const auto memory = gather::fill_pack(open(), files[i]);
    ASSERT_TRUE(memory) << memory.error().message;
    const std::string staging = gather::staging_name("0123456789abcdef", ObjectId(static_cast<uint32_t>(i)));
    auto staged = gather::stage_pack(open(), arriving(files[i]), **memory, staging, nullptr, nullptr);
    ASSERT_TRUE(staged) << staged.error().message;
    const Status named = (*staged)->commit();
    ASSERT_TRUE(named) << named.error().message;
    EXPECT_EQ((*staged)->missing().failed, 0U);
  }
  for (size_t i = 0; i < 500; ++i)
    EXPECT_EQ(bytes_in(base_ / "into" / "tree" / std::to_string(i % 10) / ("f" + std::to_string(i))),
              "bytes of " + std::to_string(i));
  struct stat info {};
  ASSERT_EQ(::stat((base_ / "into/tree/3/f3").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0666U & ~kMask);
}

// The process that has staged a pack may have gone when it is to be named.
TEST_F(UsersTrees, WhatAProcessThatHasGoneHadStagedIsStagedAgain) {
  plant(200);
  const catalog::File pack = listed(open()).front();
  const auto memory = gather::fill_pack(open(), pack);
  ASSERT_TRUE(memory);
  const std::string staging = gather::staging_name("0123456789abcdef", ObjectId(0));
  auto staged = gather::stage_pack(open(), arriving(pack), **memory, staging, nullptr, nullptr);
  ASSERT_TRUE(staged);
  EXPECT_TRUE(fs::exists(base_ / "into" / staging));
  cut();
  const Status named = (*staged)->commit();
  ASSERT_TRUE(named) << named.error().message;
  EXPECT_EQ(bytes_in(base_ / "into/tree/7/f7"), "bytes of 7");
  EXPECT_FALSE(fs::exists(base_ / "into" / staging));
}

TEST_F(UsersTrees, WhatIsGivenUpIsRemoved) {
  plant(50);
  const catalog::File pack = listed(open()).front();
  const auto memory = gather::fill_pack(open(), pack);
  ASSERT_TRUE(memory) << memory.error().message;
  const std::string staging = gather::staging_name("0123456789abcdef", ObjectId(0));
  auto staged = gather::stage_pack(open(), arriving(pack), **memory, staging, nullptr, nullptr);
  ASSERT_TRUE(staged);
  staged->reset();
  ASSERT_TRUE(open().trees_of_user()->remove_staging("beta", arriving(pack), staging));
  EXPECT_FALSE(fs::exists(base_ / "into" / staging));
  // No name but one of what is under way.
  fs::create_directories(base_ / "into" / "kept");
  EXPECT_FALSE(open().trees_of_user()->remove_staging("beta", arriving(pack), "kept"));
  EXPECT_TRUE(fs::exists(base_ / "into" / "kept"));
}

TEST_F(UsersTrees, WhatCameIsReadAndNotChanged) {
  const auto memory = gather::PackMemory::make(4096);
  ASSERT_TRUE(memory);
  const UniqueFd again(
      ::open(("/proc/self/fd/" + std::to_string((*memory)->fd())).c_str(), O_RDONLY | O_CLOEXEC));
  const Result<gather::PackView> view = gather::PackView::of(again.get(), 4096);
  ASSERT_TRUE(view);
  (*memory)->bytes()[7] = 9;
  EXPECT_EQ(view->bytes()[7], 9);
  EXPECT_EQ(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, again.get(), 0), MAP_FAILED);
  struct stat info {};
  ASSERT_EQ(::fstat(again.get(), &info), 0);
  EXPECT_EQ(info.st_mode & 077, 0U) << "nobody else opens it";
  EXPECT_FALSE(gather::PackView::of(again.get(), 8192)) << "it has not so many bytes";
}

TEST_F(UsersTrees, OnlyWhatWasAskedForIsStaged) {
  plant(20);
  const catalog::File pack = listed(open()).front();
  const auto memory = gather::fill_pack(open(), pack);
  ASSERT_TRUE(memory) << memory.error().message;
  const catalog::AskedNames asked({"from/another"});
  const auto staged =
      gather::stage_pack(open(), arriving(pack), **memory,
                         gather::staging_name("0123456789abcdef", ObjectId(0)), &asked, nullptr);
  ASSERT_FALSE(staged);
  EXPECT_EQ(staged.error().code, ErrorCode::kIncompatible);
  EXPECT_TRUE(fs::is_empty(base_ / "into"));
}

TEST_F(UsersTrees, ThePreviewIsThatOfTheNodeItself) {
  plant(2500);
  const auto all = [](const Exports& exports) {
    std::vector<std::string> paths;
    EXPECT_TRUE(gather::preview_sources(exports, {"from/tree"}, {}, [&paths](const catalog::Entry& entry) {
      paths.push_back(entry.path);
      return Status();
    }));
    return paths;
  };
  EXPECT_EQ(all(open()), all(plain()));
}

TEST_F(UsersTrees, DirectoriesAreMadeOneByOneAndAsMkdirDoes) {
  const auto made = open().make_directories_for("into", "a/b/c", nullptr);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_TRUE(fs::is_directory(base_ / "into/a/b/c"));
  std::ofstream(base_ / "into" / "file");
  catalog::Failure why = catalog::Failure::kNone;
  EXPECT_FALSE(open().make_directories_for("into", "file/x", &why));
  EXPECT_EQ(why, catalog::Failure::kOtherKind);
  EXPECT_TRUE(open().make_missing("into/x/y", true, {}));
  EXPECT_TRUE(fs::is_directory(base_ / "into/x/y"));
}

TEST_F(UsersTrees, WhoOpensFilesForOneCommandHasNoTrees) {
  int both[2] = {};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, both), 0);
  Channel here{UniqueFd(both[0])};
  std::thread serving([this, fd = both[1]] {
    Channel there{UniqueFd(fd)};
    users::serve(there, {.exports = exports_, .names = std::set<std::string>{"/x"}},
                 std::chrono::seconds(60));
  });
  Call call{.kind = Kind::kList, .file = {}};
  call.tree.wish = exports::UserTrees::Wish{.paths = {"from"}, .selection = {}, .known = {}, .expected = {}};
  EXPECT_EQ(here.send(encode(call), {}, std::chrono::seconds(60)), 0);
  Parcel parcel;
  EXPECT_EQ(here.receive(&parcel, std::chrono::seconds(60)), 0);
  const std::optional<Answer> answer = decode_answer(parcel.bytes);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->error.code, ErrorCode::kUsage);
  here = Channel(UniqueFd());
  serving.join();
}

}  // namespace
}  // namespace sluice::users
