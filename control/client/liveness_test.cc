// SPDX-License-Identifier: Apache-2.0
#include "control/client/liveness.h"

#include <gtest/gtest.h>

#include <future>

#include "control/api/fake_sessions_for_test.h"

namespace sluice::api {
namespace {

using std::chrono::milliseconds;

class LivenessTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Status served = control_.serve();
    ASSERT_TRUE(served) << served.error().message;
    stub_ = Control::NewStub(
        grpc::CreateChannel("unix:" + control_.socket.string(), grpc::InsecureChannelCredentials()));
    Session session;
    session.set_id("s1");
    session.set_state(Session::TRANSFERRING);
    control_.on_io([&] { control_.sessions.sessions["s1"] = session; });
  }

  service::FakeControl control_;
  std::unique_ptr<Control::Stub> stub_;
};

TEST_F(LivenessTest, ACallEndsWhenControlAnswersNobody) {
  std::promise<void> goes_on;
  asio::post(control_.io, [wait = goes_on.get_future().share()] { wait.wait(); });
  grpc::ClientContext context;
  const Liveness liveness(*stub_, context,
                          {.first = milliseconds(1), .between = milliseconds(1), .limit = milliseconds(50)});
  CountersReply reply;
  const grpc::Status status = stub_->Counters(&context, {}, &reply);
  goes_on.set_value();
  EXPECT_FALSE(status.ok());
  EXPECT_TRUE(liveness.stands_still());
}

TEST_F(LivenessTest, AStreamEndsAsWell) {
  grpc::ClientContext context;
  SessionRef ref;
  ref.set_id("s1");
  const Liveness liveness(*stub_, context,
                          {.first = milliseconds(1), .between = milliseconds(1), .limit = milliseconds(50)});
  const auto stream = stub_->WatchSession(&context, ref);
  std::promise<void> goes_on;
  asio::post(control_.io, [wait = goes_on.get_future().share()] { wait.wait(); });
  Session session;
  while (stream->Read(&session)) {
  }
  goes_on.set_value();
  EXPECT_FALSE(stream->Finish().ok());
  EXPECT_TRUE(liveness.stands_still());
}

// However long it takes, as long as the loop turns.
TEST_F(LivenessTest, ACallWhoseAnswerTakesLongIsWaitedFor) {
  grpc::ClientContext context;
  SessionRef ref;
  ref.set_id("s1");
  Liveness liveness(*stub_, context,
                    {.first = milliseconds(1), .between = milliseconds(1), .limit = milliseconds(60'000)});
  const auto stream = stub_->WatchSession(&context, ref);
  // Every question is a look at a session.
  while (control_.on_io([&] { return control_.sessions.shows; }) < 20) std::this_thread::yield();
  control_.on_io([&] { control_.sessions.sessions["s1"].set_state(Session::SUCCEEDED); });
  Session session;
  while (stream->Read(&session)) {
  }
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(session.state(), Session::SUCCEEDED);
  EXPECT_FALSE(liveness.stands_still());
}

// Nothing waits for the answer to a question that nobody needs any more.
TEST_F(LivenessTest, ItEndsInTheMiddleOfAQuestion) {
  std::promise<void> goes_on;
  asio::post(control_.io, [wait = goes_on.get_future().share()] { wait.wait(); });
  grpc::ClientContext context;
  {
    const Liveness liveness(
        *stub_, context,
        {.first = milliseconds(0), .between = milliseconds(1), .limit = std::chrono::hours(1)});
    std::this_thread::yield();
  }
  goes_on.set_value();
}

}  // namespace
}  // namespace sluice::api
