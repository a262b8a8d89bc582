// Users of this host: each sees his own sessions, and comes in as whom the kernel says he is.
// SPDX-License-Identifier: Apache-2.0
#include "control/api/users.h"

#include <fcntl.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <cstring>

#include "control/api/fake_names_for_test.h"
#include "control/api/fake_sessions_for_test.h"
#include "control/api/users_door.h"
#include "control/proto/api.grpc.pb.h"
#include "control/proto/error_metadata.h"

namespace sluice::service {
namespace {

constexpr uint32_t kAda = 12345, kBen = 12346;

api::Session session_of(const std::string& id, std::optional<uint32_t> uid,
                        api::Session::State state = api::Session::TRANSFERRING) {
  api::Session session;
  session.set_id(id);
  session.set_state(state);
  if (uid) session.set_uid(*uid);
  return session;
}

// Shows what all have: two of Ada's, one of Ben's, one of an operator.
void fill(FakeSessions& sessions) {
  sessions.sessions["aa01"] = session_of("aa01", kAda);
  sessions.sessions["aa02"] = session_of("aa02", kBen);
  sessions.sessions["ab03"] = session_of("ab03", kAda, api::Session::SUCCEEDED);
  sessions.sessions["ac04"] = session_of("ac04", std::nullopt);
}

template <typename R>
R answer(asio::awaitable<R> work) {
  asio::io_context io;
  std::optional<R> result;
  auto run = [&]() -> asio::awaitable<void> { result.emplace(co_await std::move(work)); };
  asio::co_spawn(io, run, asio::detached);
  io.run();
  return std::move(*result);
}

class UserSessionsTest : public ::testing::Test {
 protected:
  UserSessionsTest() {
    auto all = std::make_unique<FakeSessions>();
    all_ = all.get();
    all_->owner = std::this_thread::get_id();
    fill(*all_);
    ada_ = std::make_unique<UserSessions>(std::move(all), kAda);
  }
  FakeSessions* all_ = nullptr;
  std::unique_ptr<UserSessions> ada_;
};

TEST_F(UserSessionsTest, ShowsHisOwnAndNoOthers) {
  ASSERT_EQ(ada_->list().size(), 2U);
  ASSERT_EQ(ada_->overviews().size(), 1U);
  EXPECT_EQ(ada_->overviews()[0].id(), "aa01");
  EXPECT_EQ(ada_->ended(), std::vector<std::string>{"ab03"});
  EXPECT_TRUE(ada_->show("aa01"));
  for (const char* other : {"aa02", "ac04", "ac", "zz", ""}) {
    const Result<api::Session> session = ada_->show(other);
    ASSERT_FALSE(session) << other;
    EXPECT_NE(session.error().message.find("no session"), std::string::npos);
  }
}

TEST_F(UserSessionsTest, TheBeginningOfAnIdMeansOneOfHisOwn) {
  const Result<api::Session> session = ada_->show("aa");  // of two, of which one is another's
  ASSERT_TRUE(session) << session.error().message;
  EXPECT_EQ(session->id(), "aa01");
  EXPECT_NE(ada_->show("a").error().message.find("begins 2"), std::string::npos);
}

TEST_F(UserSessionsTest, TouchesNoneOfOthers) {
  for (const std::string other : {"aa02", "ac04"}) {
    EXPECT_FALSE(answer(ada_->cancel(other)));
    EXPECT_FALSE(answer(ada_->pause(other)));
    EXPECT_FALSE(answer(ada_->go_on(other)));
    EXPECT_FALSE(answer(ada_->limit(other, 1)));
    EXPECT_FALSE(answer(ada_->prioritize(other, -1)));
    EXPECT_FALSE(answer(ada_->verification(other)));
    EXPECT_FALSE(ada_->set_log_level(other, "off"));
    api::LogRequest request;
    request.set_id(other);
    EXPECT_FALSE(ada_->log(request, {}));
    EXPECT_EQ(all_->sessions[other].state(), api::Session::TRANSFERRING);
  }
  EXPECT_TRUE(answer(ada_->pause("aa0")));
  EXPECT_EQ(all_->sessions["aa01"].state(), api::Session::PAUSED);
  EXPECT_TRUE(answer(ada_->prioritize("aa01", -1)));
  EXPECT_FALSE(answer(ada_->prioritize("aa01", 1)));
}

TEST_F(UserSessionsTest, WhatIsTheNodesIsTheOperators) {
  EXPECT_FALSE(answer(ada_->set_component_level({})));
  EXPECT_FALSE(answer(ada_->about("beta")));
}

TEST_F(UserSessionsTest, HisNamesOfThisNodeHeSeesAndChangesAsHimself) {
  auto as_user = std::make_unique<FakeNames>();
  FakeNames& asked = *as_user;
  asked.done.entries = 1;
  UserNames his(std::move(as_user));
  exports::Pulse pulse;
  EXPECT_TRUE(his.list_own({.path = "data"}, "", {}));
  EXPECT_TRUE(his.list_own({.path = "data"}, "beta", {}));
  EXPECT_EQ(his.change_own(names::Remove{.path = "data/x"}, pulse)->entries, 1U);
  ASSERT_EQ(asked.asked.size(), 3U);
  EXPECT_EQ(asked.asked[1].first, "own, for beta");
}

// A connection of this user: the kernel notes whose thread it was. The C library would change all threads.
UniqueFd connected_as(uint32_t uid, const std::filesystem::path& path) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  std::thread([&] {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path.c_str());
    if (uid != 0 && ::syscall(SYS_setresuid, uid, uid, uid) != 0) return fd.reset();
    if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fd.reset();
  }).join();
  return fd;
}

class UsersDoorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be other users";
    path_ = control_.directory / "run" / "users.sock";
    door_ = std::make_unique<UsersDoor>(
        control_.io, AsUser{.sessions =
                                [this](uint32_t uid) {
                                  asked_.push_back(uid);
                                  auto all = std::make_unique<FakeSessions>();
                                  fill(*all);
                                  return all;
                                },
                            .names = [](uint32_t) { return std::make_unique<FakeNames>(); }});
    const Status started = door_->start(path_, [this](uint32_t uid) {
      return uid >= strangers_from_ ? Status(Error{ErrorCode::kConfiguration, "no member"}) : Status();
    });
    ASSERT_TRUE(started) << started.error().message;
    std::filesystem::permissions(control_.directory, std::filesystem::perms::all);
    std::filesystem::permissions(control_.directory / "run", std::filesystem::perms::all);
    std::filesystem::permissions(path_, std::filesystem::perms::all);
  }
  void TearDown() override {
    if (door_) door_->stop();
    door_.reset();
  }
  std::vector<std::string> ids_seen(UniqueFd fd) {
    std::vector<std::string> ids;
    if (!fd) return {"no connection"};
    ::fcntl(fd.get(), F_SETFL, O_NONBLOCK);
    const auto stub = api::Control::NewStub(grpc::CreateInsecureChannelFromFd("test", fd.release()));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(120));
    api::ListSessionsReply reply;
    if (!stub->ListSessions(&context, {}, &reply).ok()) return {"refused"};
    for (const api::Session& session : reply.sessions()) ids.push_back(session.id());
    return ids;
  }

  FakeControl control_;
  std::filesystem::path path_;
  std::vector<uint32_t> asked_;
  std::atomic<uint32_t> strangers_from_ = UINT32_MAX;
  std::unique_ptr<UsersDoor> door_;
};

TEST_F(UsersDoorTest, EachIsWhoTheKernelSays) {
  using Ids = std::vector<std::string>;
  EXPECT_EQ(ids_seen(connected_as(kAda, path_)), (Ids{"aa01", "ab03"}));
  EXPECT_EQ(ids_seen(connected_as(kBen, path_)), (Ids{"aa02"}));
  EXPECT_EQ(ids_seen(connected_as(kAda, path_)), (Ids{"aa01", "ab03"}));
  EXPECT_EQ(asked_, (std::vector<uint32_t>{kAda, kBen}));
}

TEST_F(UsersDoorTest, StrangersTakeNoMembersRoom) {
  strangers_from_ = kBen + 1;
  std::vector<UniqueFd> held;
  for (uint32_t i = 1; i <= kStrangersAtOnce; ++i) held.push_back(connected_as(kBen + i, path_));
  EXPECT_EQ(ids_seen(connected_as(kBen + 100, path_)), std::vector<std::string>{"refused"});
  EXPECT_EQ(ids_seen(connected_as(kAda, path_)).size(), 2U);
  held.pop_back();
  EXPECT_TRUE(ids_seen(connected_as(kBen + 100, path_)).empty()) << "he has none";
}

TEST_F(UsersDoorTest, RootIsNoUser) {
  EXPECT_EQ(ids_seen(connected_as(0, path_)), std::vector<std::string>{"refused"});
  EXPECT_TRUE(asked_.empty());
}

TEST_F(UsersDoorTest, OneUserHasSoManyConnectionsAndAnotherHasHisOwn) {
  std::vector<UniqueFd> held;
  for (size_t i = 0; i < kConnectionsOfUser; ++i) held.push_back(connected_as(kAda, path_));
  EXPECT_EQ(ids_seen(connected_as(kAda, path_)), std::vector<std::string>{"refused"});
  EXPECT_EQ(ids_seen(connected_as(kBen, path_)), std::vector<std::string>{"aa02"});
  held.pop_back();  // who goes makes room: that is seen before the next is let in
  EXPECT_EQ(ids_seen(connected_as(kAda, path_)).size(), 2U);
}

}  // namespace
}  // namespace sluice::service
