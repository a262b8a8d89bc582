// Calls and streams, in front of the real server.
// SPDX-License-Identifier: Apache-2.0
#include "control/client/call.h"

#include <gtest/gtest.h>

#include <future>
#include <stdexcept>

#include "control/api/fake_sessions_for_test.h"
#include "control/client/requests.h"
#include "control/client/watch.h"
#include "control/client/way.h"

namespace sluice::api {
namespace {

constexpr double kSoonS = 0.05;

class CallTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Status served = control_.serve();
    ASSERT_TRUE(served) << served.error().message;
    session_is(Session::TRANSFERRING);
  }
  void session_is(Session::State state, uint32_t error_code = 0) {
    control_.on_io([&] {
      Session& session = control_.sessions.sessions["s1"];
      session.set_id("s1");
      session.set_state(state);
      session.set_error_code(error_code);
    });
  }
  std::optional<Failure> show(const std::string& id, std::optional<double> limit_s = kCallS) {
    Session reply;
    return Call(*stub_, limit_s).ask(*stub_, &Control::Stub::ShowSession, reference(id), &reply);
  }

  service::FakeControl control_;
  std::unique_ptr<Control::Stub> stub_ = Control::NewStub(channel_to(control_.socket));
};

TEST_F(CallTest, ARefusalIsInTheNodesOwnWords) {
  EXPECT_FALSE(show("s1"));
  const auto refused = show("s9");
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->kind, Failure::Kind::kRefused);
  EXPECT_EQ(refused->code, static_cast<int>(ErrorCode::kUsage));
  EXPECT_EQ(refused->name, "usage");
  EXPECT_EQ(error_of(*refused).code, ErrorCode::kUsage);
  EXPECT_EQ(error_of(*refused).message, refused->message);
}

TEST_F(CallTest, ACodeThatOnlyANewerNodeKnowsIsInternalToACommand) {
  const Failure newer{.kind = Failure::Kind::kRefused,
                      .code = static_cast<int>(kErrorCodeLast) + 1,
                      .name = "new",
                      .message = "why"};
  EXPECT_EQ(error_of(newer).code, ErrorCode::kInternal);
  EXPECT_EQ(error_of(newer).message, "why");
}

TEST_F(CallTest, NobodyWhoListensIsAnEndedConnection) {
  control_.server.reset();
  const auto failure = show("s1");
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->kind, Failure::Kind::kEnded);
  EXPECT_EQ(error_of(*failure).code, ErrorCode::kDaemonNotRunning);
}

TEST_F(CallTest, AnAnswerThatDoesNotComeInTimeIsLate) {
  std::promise<void> goes_on;
  asio::post(control_.io, [wait = goes_on.get_future().share()] { wait.wait(); });
  const auto failure = show("s1", kSoonS);
  goes_on.set_value();
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->kind, Failure::Kind::kLate);
  EXPECT_NE(error_of(*failure).message.find("see its log and 'sluice session list'"), std::string::npos);
}

TEST_F(CallTest, ANodeThatDoesNotKnowACallIsOfAnotherVersion) {
  const Failure failure{.kind = Failure::Kind::kOtherVersion};
  EXPECT_EQ(error_of(failure).code, ErrorCode::kIncompatible);
}

TEST_F(CallTest, ANodeThatLacksThreadsSaysWhichLimit) {
  const Failure failure{.kind = Failure::Kind::kExhausted, .message = "Server Threadpool Exhausted"};
  EXPECT_EQ(error_of(failure).code, ErrorCode::kResources);
  EXPECT_NE(error_of(failure).message.find("ulimit -u"), std::string::npos);
}

TEST_F(CallTest, AStreamThatIsLeftEndsWell) {
  Call call(*stub_, std::nullopt);
  int parts = 0;
  EXPECT_FALSE(call.read(stub_->WatchSession(call.context(), reference("s1")), [&](const Session&) {
    ++parts;
    return false;
  }));
  EXPECT_EQ(parts, 1);
}

TEST_F(CallTest, AnExceptionOfWhoeverReadsEndsTheStream) {
  Call call(*stub_, std::nullopt);
  EXPECT_THROW(call.read(stub_->WatchSession(call.context(), reference("s1")),
                         [](const Session&) -> bool { throw std::runtime_error("enough"); }),
               std::runtime_error);
}

TEST_F(CallTest, AWatchSaysHowItEnded) {
  const auto all = [](const Session&) { return true; };
  const auto first = [](const Session&) { return false; };
  EXPECT_EQ(watch_session(*stub_, "s1", std::nullopt, first).end, Watched::End::kEnough);
  const Watched late = watch_session(*stub_, "s1", kSoonS, all);
  EXPECT_EQ(late.end, Watched::End::kTimeOver);
  EXPECT_EQ(late.last.id(), "s1");
  const Watched unknown = watch_session(*stub_, "s9", std::nullopt, all);
  EXPECT_EQ(unknown.end, Watched::End::kBroken);
  ASSERT_TRUE(unknown.failure);
  EXPECT_EQ(unknown.failure->kind, Failure::Kind::kRefused);
  session_is(Session::PAUSED, static_cast<uint32_t>(ErrorCode::kNoSpace));
  EXPECT_EQ(watch_session(*stub_, "s1", std::nullopt, all).end, Watched::End::kStandsStill);
  session_is(Session::SUCCEEDED);
  EXPECT_EQ(watch_session(*stub_, "s1", std::nullopt, all).end, Watched::End::kStandsStill);
}

}  // namespace
}  // namespace sluice::api
