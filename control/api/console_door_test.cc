// The console's door: its user alone comes in, and each call reaches what the person sees whom it is for.
// SPDX-License-Identifier: Apache-2.0
#include "control/api/console_door.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <mutex>

#include "control/api/fake_names_for_test.h"
#include "control/api/fake_sessions_for_test.h"
#include "control/api/services.h"
#include "control/async/clock.h"
#include "control/identity/identity.h"
#include "control/identity/signature.h"
#include "control/proto/console.grpc.pb.h"
#include "control/proto/error_metadata.h"

namespace sluice::service {
namespace {

using Role = api::Delegation;

constexpr uint32_t kOperator = 500, kUser = 501, kViewer = 502;

Result<Person> person_of(uint32_t uid) {
  if (uid == kOperator) return Person{.uid = uid, .name = "ada", .roles = {Role::VIEWER, Role::OPERATOR}};
  if (uid == kUser) return Person{.uid = uid, .name = "ben", .roles = {Role::USER}};
  if (uid == kViewer) return Person{.uid = uid, .name = "eve", .roles = {Role::VIEWER}};
  return Error{ErrorCode::kConfiguration, "a stranger"};
}

class ConsoleDoorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(control_.serve());
    directory_ = control_.socket.parent_path();
    ASSERT_TRUE(identity::create(directory_ / "key", "console"));
    key_ = *identity::load(directory_ / "key");
    control_.on_io([&] {
      for (const auto& [id, uid] : {std::pair("aa", kUser), std::pair("bb", kOperator)}) {
        api::Session& session = control_.sessions.sessions[id];
        session.set_id(id);
        session.set_uid(uid);
        session.add_files()->set_source("/secret");
      }
    });
    door_ = std::make_unique<ConsoleDoor>(
        control_.io,
        ConsoleDoor::House{.sessions = control_.sessions,
                           .names = control_.names,
                           .as_user = {.sessions = [this](uint32_t) { return as_user(); },
                                       .names = [](uint32_t) { return std::make_unique<FakeNames>(); }},
                           .person = person_of,
                           .audit =
                               [this](const ConsoleCall& call) {
                                 const std::lock_guard lock(mutex_);
                                 audited_.push_back(call);
                               },
                           .receipt = [](const api::Session& session) -> Result<std::string> {
                             return "receipt of " + session.id();
                           }});
    socket_ = directory_ / "console.sock";
    ASSERT_TRUE(door_->start(socket_, ::geteuid(), key_.certificate_pem));
    channel_ = grpc::CreateChannel("unix:" + socket_.string(), grpc::InsecureChannelCredentials());
  }
  void TearDown() override { door_->stop(); }

  std::unique_ptr<SessionManager> as_user() {
    auto all = std::make_unique<FakeSessions>();
    control_.on_io([&] {
      all->sessions = control_.sessions.sessions;
      all->owner = control_.sessions.owner;
    });
    return all;
  }
  void sign(grpc::ClientContext& context, uint32_t uid, Role::Role role, const std::string& method,
            int64_t age_ns = 0, const identity::Identity* by = nullptr) {
    api::Delegation said;
    said.set_method(method);
    said.set_unix_ns(async::unix_ns() - age_ns);
    said.set_uid(uid);
    said.set_role(role);
    const std::string bytes = said.SerializeAsString();
    const auto signature =
        identity::sign(by != nullptr ? *by : key_, std::string(kDelegationPurpose) + bytes);
    ASSERT_TRUE(signature);
    context.AddMetadata(kDelegationKey, bytes);
    context.AddMetadata(kDelegationSignatureKey, *signature);
  }
  grpc::Status list(uint32_t uid, Role::Role role, api::ListSessionsReply* reply,
                    const std::string& method = "Control/ListSessions", int64_t age_ns = 0,
                    const identity::Identity* by = nullptr) {
    grpc::ClientContext context;
    sign(context, uid, role, method, age_ns, by);
    return api::Control::NewStub(channel_)->ListSessions(&context, {}, reply);
  }
  static std::string ids(const api::ListSessionsReply& reply) {
    std::string all;
    for (const api::Session& session : reply.sessions()) all += session.id() + " ";
    return all;
  }

  FakeControl control_;
  std::filesystem::path directory_, socket_;
  identity::Identity key_;
  std::unique_ptr<ConsoleDoor> door_;
  std::shared_ptr<grpc::Channel> channel_;
  std::mutex mutex_;
  std::vector<ConsoleCall> audited_;
};

TEST_F(ConsoleDoorTest, EachRoleSeesWhatItMay) {
  api::ListSessionsReply all, hidden, own;
  ASSERT_TRUE(list(kOperator, Role::OPERATOR, &all).ok());
  EXPECT_EQ(ids(all), "aa bb ");
  EXPECT_EQ(all.sessions(0).files(0).source(), "/secret");
  ASSERT_TRUE(list(kViewer, Role::VIEWER, &hidden).ok());
  EXPECT_EQ(ids(hidden), "aa bb ");
  EXPECT_EQ(hidden.sessions(0).files(0).source(), "");
  ASSERT_TRUE(list(kUser, Role::USER, &own).ok());
  EXPECT_EQ(ids(own), "aa ");
}

TEST_F(ConsoleDoorTest, ARoleThatThePersonLacksIsRefused) {
  api::ListSessionsReply reply;
  for (const auto& [uid, role] :
       {std::pair(kUser, Role::OPERATOR), std::pair(kUser, Role::VIEWER), std::pair(kViewer, Role::OPERATOR),
        std::pair(kOperator, Role::USER), std::pair(kOperator, Role::NONE), std::pair(999U, Role::VIEWER)})
    EXPECT_EQ(list(uid, role, &reply).error_code(), grpc::StatusCode::FAILED_PRECONDITION)
        << uid << " " << role;
}

TEST_F(ConsoleDoorTest, WhatIsNotSignedForThisCallIsRefused) {
  api::ListSessionsReply reply;
  ASSERT_TRUE(identity::create(directory_ / "other", "console"));
  const identity::Identity other = *identity::load(directory_ / "other");
  EXPECT_FALSE(list(kOperator, Role::OPERATOR, &reply, "Control/Node").ok()) << "another call";
  EXPECT_FALSE(list(kOperator, Role::OPERATOR, &reply, "Control/ListSessions", 2 * kDelegationAgeMaxNs).ok());
  EXPECT_FALSE(
      list(kOperator, Role::OPERATOR, &reply, "Control/ListSessions", -2 * kDelegationAgeMaxNs).ok());
  EXPECT_FALSE(list(kOperator, Role::OPERATOR, &reply, "Control/ListSessions", 0, &other).ok())
      << "another key";
  grpc::ClientContext bare;
  EXPECT_FALSE(api::Control::NewStub(channel_)->ListSessions(&bare, {}, &reply).ok());
  ASSERT_TRUE(list(kOperator, Role::OPERATOR, &reply).ok());
}

TEST_F(ConsoleDoorTest, RightsSayWhatAPersonMay) {
  grpc::ClientContext context;
  sign(context, kOperator, Role::NONE, "Console/Rights");
  api::RightsReply reply;
  ASSERT_TRUE(api::Console::NewStub(channel_)->Rights(&context, {}, &reply).ok());
  EXPECT_EQ(reply.name(), "ada");
  EXPECT_EQ(reply.roles_size(), 2);
  grpc::ClientContext stranger;
  sign(stranger, 999, Role::NONE, "Console/Rights");
  EXPECT_FALSE(api::Console::NewStub(channel_)->Rights(&stranger, {}, &reply).ok());
}

TEST_F(ConsoleDoorTest, WhatChangesSomethingIsAudited) {
  const auto stub = api::Control::NewStub(channel_);
  grpc::ClientContext viewed, cancelled;
  sign(viewed, kViewer, Role::VIEWER, "Control/CancelSession");
  sign(cancelled, kOperator, Role::OPERATOR, "Control/CancelSession");
  api::SessionRef ref;
  ref.set_id("aa");
  api::Session session;
  EXPECT_FALSE(stub->CancelSession(&viewed, ref, &session).ok());
  EXPECT_TRUE(stub->CancelSession(&cancelled, ref, &session).ok());
  api::ListSessionsReply reply;
  ASSERT_TRUE(list(kOperator, Role::OPERATOR, &reply).ok());
  const std::lock_guard lock(mutex_);
  ASSERT_EQ(audited_.size(), 2U) << "to look changes nothing";
  EXPECT_EQ(audited_[0].person.name, "eve");
  EXPECT_NE(audited_[0].error, "");
  EXPECT_EQ(audited_[1].person.name, "ada");
  EXPECT_EQ(audited_[1].method, "Control/CancelSession");
  EXPECT_EQ(audited_[1].subject, "aa");
  EXPECT_EQ(audited_[1].error, "");
}

TEST_F(ConsoleDoorTest, AReceiptIsForOperators) {
  const auto stub = api::Console::NewStub(channel_);
  api::ReceiptRequest request;
  request.set_id("aa");
  api::ReceiptReply reply;
  grpc::ClientContext asked, viewed, own;
  sign(asked, kOperator, Role::OPERATOR, "Console/Receipt");
  sign(viewed, kViewer, Role::VIEWER, "Console/Receipt");
  sign(own, kUser, Role::USER, "Console/Receipt");
  EXPECT_TRUE(stub->Receipt(&asked, request, &reply).ok());
  EXPECT_EQ(reply.receipt(), "receipt of aa");
  EXPECT_FALSE(stub->Receipt(&viewed, request, &reply).ok());
  EXPECT_FALSE(stub->Receipt(&own, request, &reply).ok());
}

// The console's user is another.
TEST_F(ConsoleDoorTest, AnotherUserIsNotServed) {
  door_->stop();
  ASSERT_TRUE(door_->start(socket_, ::geteuid() + 1, key_.certificate_pem));
  api::ListSessionsReply reply;
  EXPECT_EQ(list(kOperator, Role::OPERATOR, &reply).error_code(), grpc::StatusCode::UNAVAILABLE);
}

// A stream ends when the door does.
TEST_F(ConsoleDoorTest, StoppingEndsStreams) {
  grpc::ClientContext context;
  sign(context, kOperator, Role::OPERATOR, "Control/SessionEvents");
  auto reader = api::Control::NewStub(channel_)->SessionEvents(&context, {});
  api::SessionEvent event;
  ASSERT_TRUE(reader->Read(&event));
  door_->stop();
  while (reader->Read(&event)) {
  }
  EXPECT_FALSE(reader->Finish().ok());
}

}  // namespace
}  // namespace sluice::service
