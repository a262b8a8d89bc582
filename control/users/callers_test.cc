// Processes that open files for their user, outside the exports: who is wanted, who comes back, who goes.
// SPDX-License-Identifier: Apache-2.0
#include "control/users/callers.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "control/users/channel.h"
#include "control/users/server.h"

namespace sluice::users {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kSoon{60};
const std::string kToken(kTokenBytes, 'a');

class CallersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = "/tmp/sluice-callers-test-XXXXXX";
    base_ = ::mkdtemp(pattern.data());
    std::ofstream(base_ / "named") << "bytes";
    std::ofstream(base_ / "other") << "bytes";
    config::Export all;
    all.name = "all";
    all.path = "/";
    all.read = all.write = true;
    served_ = {.exports = {all},
               .names = std::set<std::string>{(base_ / "named").string(), (base_ / "new").string()}};
    ASSERT_TRUE(callers_.listen(base_ / "s"));
  }
  void TearDown() override { fs::remove_all(base_); }

  // A process that calls, and what it hears to its greeting.
  Answer greet(std::optional<Channel>* channel, const std::string& hello = hello_of_caller(kToken)) {
    channel->emplace(connect_to(base_ / "s"));
    Parcel parcel;
    EXPECT_EQ((*channel)->send(hello, {}, kSoon), 0);
    if ((*channel)->receive(&parcel, kSoon) != 0)
      return {.error = {ErrorCode::kDaemonNotRunning, "it hung up"}};
    return decode_answer(parcel.bytes).value_or(Answer{.error = {ErrorCode::kInternal, "no answer"}});
  }
  // One that serves until it hears goodbye (true) or nothing more.
  std::future<bool> serving() {
    std::optional<Channel> channel;
    const Answer answer = greet(&channel);
    EXPECT_TRUE(answer.status()) << answer.error.message;
    return std::async(std::launch::async, [this, channel = std::move(channel)]() mutable {
      return serve(*channel, served_, kSoon);
    });
  }
  std::shared_ptr<exports::UserFiles> files() { return callers_.of(::getuid(), kToken); }
  Status open(exports::UserFiles& files, const std::string& name) {
    const Result<UniqueFd> fd = files.open_source("beta", (base_ / name).string(), false);
    return fd ? Status() : Status(fd.error());
  }

  fs::path base_;
  Served served_;
  Callers callers_;
};

TEST_F(CallersTest, WhatWasNamedIsOpenedUntilNobodyWantsIt) {
  EXPECT_FALSE(callers_.waiting(kToken));
  std::future<bool> process = serving();
  EXPECT_EQ(callers_.waiting(kToken), ::getuid());
  {
    const auto wanted = files();
    EXPECT_EQ(wanted.get(), files().get()) << "all who want it share it";
    EXPECT_TRUE(open(*wanted, "named"));
    const Status other = open(*wanted, "other");
    ASSERT_FALSE(other);
    EXPECT_EQ(other.error().code, ErrorCode::kOutsideExports);
    exports::UserFile made{
        .peer = "beta", .spec = {.path = base_.string(), .name = "new", .size = 3}, .identity = {}};
    EXPECT_TRUE(wanted->create(made, nullptr));
    made.spec.name = "planted";
    EXPECT_FALSE(wanted->create(made, nullptr));
  }
  EXPECT_TRUE(process.get()) << "it heard that nothing more is wanted";
  EXPECT_FALSE(fs::exists(base_ / ".planted.sluice-part"));
}

TEST_F(CallersTest, OneThatHasGoneIsReplacedByOneThatComesLater) {
  auto wanted = files();
  {
    std::optional<Channel> first;
    ASSERT_TRUE(greet(&first).status());
    ASSERT_TRUE(wanted->there());
  }  // killed
  std::future<bool> second = serving();
  EXPECT_TRUE(open(*wanted, "named"));
  wanted.reset();
  EXPECT_TRUE(second.get());
}

TEST_F(CallersTest, WithoutOneItIsSaidWhoBringsItBack) {
  const Status status = files()->there();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kDaemonNotRunning);
  EXPECT_NE(status.error().message.find("session continue"), std::string::npos);
}

TEST_F(CallersTest, OnlyAProcessOfTheUserWhoAskedCounts) {
  std::future<bool> process = serving();
  EXPECT_FALSE(callers_.of(::getuid() + 1, kToken)->there());
  // And one that is wanted by somebody else is refused.
  const std::string other(kTokenBytes, 'b');
  const auto of_other = callers_.of(::getuid() + 1, other);
  std::optional<Channel> channel;
  EXPECT_EQ(greet(&channel, hello_of_caller(other)).error.code, ErrorCode::kConfiguration);
  (void)files()->there();
  EXPECT_TRUE(process.get());
}

TEST_F(CallersTest, ASecondIsSentAwayWhileTheFirstWaits) {
  std::optional<Channel> first;
  std::optional<Channel> second;
  ASSERT_TRUE(greet(&first).status());
  EXPECT_EQ(greet(&second).error.code, ErrorCode::kDestinationExists);
}

TEST_F(CallersTest, RubbishIsRefused) {
  for (const std::string& hello :
       {std::string("rubbish"), hello_of_caller("short"), hello_of_caller(std::string(kTokenBytes, 'g'))}) {
    std::optional<Channel> channel;
    EXPECT_FALSE(greet(&channel, hello).status());
  }
  std::optional<Channel> channel;
  EXPECT_TRUE(greet(&channel).status()) << "others are heard";
}

TEST_F(CallersTest, WhenControlGoesTheProcessStaysForItsNextLife) {
  std::optional<Channel> process;
  ASSERT_TRUE(greet(&process).status());
  auto wanted = files();
  ASSERT_TRUE(wanted->there());
  callers_.stop();
  wanted.reset();
  Parcel parcel;
  EXPECT_EQ(process->receive(&parcel, kSoon), EPIPE) << "no goodbye";
}

}  // namespace
}  // namespace sluice::users
