// The API's service of logs over a real socket, in front of a SessionManager that answers as told.
// SPDX-License-Identifier: Apache-2.0
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "control/api/fake_sessions_for_test.h"
#include "control/proto/log.grpc.pb.h"

namespace sluice::service {
namespace {

class LogsServiceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Status served = control_.serve(std::chrono::milliseconds(1));
    ASSERT_TRUE(served) << served.error().message;
    stub_ = api::Logs::NewStub(
        grpc::CreateChannel("unix:" + control_.socket.string(), grpc::InsecureChannelCredentials()));
    control_.on_io([&] {
      control_.sessions.sessions["s1"].set_id("s1");
      for (const char* kind : {"gap", "rate"}) {
        api::LogReply part;
        part.add_records()->set_kind(kind);
        control_.sessions.log_parts.push_back(part);
      }
    });
  }
  std::vector<std::string> read(bool follow) {
    grpc::ClientContext context;
    api::LogRequest request;
    request.set_id("s1");
    request.set_lane(3);
    request.set_follow(follow);
    auto reader = stub_->Read(&context, request);
    std::vector<std::string> told;
    api::LogReply part;
    while (reader->Read(&part)) {
      told.push_back(part.level());
      for (const api::LogRecord& record : part.records()) told.push_back(record.kind());
    }
    EXPECT_TRUE(reader->Finish().ok());
    return told;
  }

  FakeControl control_;
  std::unique_ptr<api::Logs::Stub> stub_;
};

TEST_F(LogsServiceTest, WhatThereIsComesBehindHowMuchIsNoted) {
  EXPECT_EQ(read(false), (std::vector<std::string>{"events", "events", "gap", "events", "rate"}));
  control_.on_io([&] { EXPECT_EQ(control_.sessions.last_log->lane(), 3U); });
}

TEST_F(LogsServiceTest, WhatComesLaterIsForWhoFollows) {
  control_.on_io([&] { control_.sessions.log_waits = true; });
  EXPECT_EQ(read(false), (std::vector<std::string>{"events", "events", "gap"}));
  EXPECT_EQ(read(true), (std::vector<std::string>{"events", "events", "gap", "events", "rate"}));
}

TEST_F(LogsServiceTest, AnUnknownSessionIsRefused) {
  grpc::ClientContext context;
  api::LogRequest request;
  request.set_id("nobody");
  api::LogReply part;
  auto reader = stub_->Read(&context, request);
  EXPECT_FALSE(reader->Read(&part));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(LogsServiceTest, TheLevelReachesTheSession) {
  grpc::ClientContext context;
  api::SessionLogLevel level;
  level.set_id("s1");
  level.set_level("packets");
  api::SessionLogLevel reply;
  ASSERT_TRUE(stub_->SetSessionLevel(&context, level, &reply).ok());
  EXPECT_EQ(control_.on_io([&] { return control_.sessions.log_level; }), "packets");
}

TEST_F(LogsServiceTest, LevelsOfComponentsAreToldAndSet) {
  control_.on_io([&] {
    for (const char* name : {"peer", "dataplane"}) control_.sessions.levels.add_levels()->set_component(name);
  });
  api::ComponentLevel level;
  level.set_component("peer");
  level.set_level("debug");
  grpc::ClientContext first;
  api::ComponentLevels levels;
  ASSERT_TRUE(stub_->SetLevel(&first, level, &levels).ok());
  grpc::ClientContext second;
  ASSERT_TRUE(stub_->Levels(&second, api::ComponentLevelsRequest(), &levels).ok());
  EXPECT_EQ(levels.levels(0).level(), "debug");
  EXPECT_EQ(levels.levels(1).level(), "");
}

}  // namespace
}  // namespace sluice::service
