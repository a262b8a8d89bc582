// Which sessions a node has: how they are found, changed, remembered, and for how many there is room.
// SPDX-License-Identifier: Apache-2.0
#include "control/node/sessions.h"

#include "control/node/node_fixture.h"

namespace sluice::node {
namespace {

class SessionsTest : public NodeTest {
 protected:
  SessionsTest()
      : NodeTest([](config::Node& node) {
          node.sessions_max = 2;
          node.queue_max = 2;
        }) {
    have_sessions();
    // The one place for sessions of this node is taken: those that begin wait for their turn, and nothing
    // else happens to them.
    services_->places.take("other", "", 0);
  }
};

TEST_F(SessionsTest, WithoutADataplaneNoneBegins) {
  const Result<std::string> id = await(starter_->send(wishes()));
  ASSERT_FALSE(id);
  EXPECT_EQ(id.error().code, ErrorCode::kDaemonNotRunning);
  EXPECT_NE(id.error().message.find("dataplane.sock"), std::string::npos) << id.error().message;
  EXPECT_TRUE(sessions_->list().empty());
}

// A host whose clock was a year ahead for a session.
TEST_F(SessionsTest, AClockThatWasWrongIsBelievedAgainOnceItIsRight) {
  const int64_t now_ns = async::unix_ns();
  sessions_->started_before(now_ns + 365 * 86'400 * int64_t{1'000'000'000});
  EXPECT_LT(sessions_->next_start_ns(), now_ns + 3600 * int64_t{1'000'000'000});
  const int64_t soon_ns = async::unix_ns() + Sessions::kClockPutBackNs / 2;
  sessions_->started_before(soon_ns);
  EXPECT_GT(sessions_->next_start_ns(), soon_ns) << "the order stays";
}

TEST_F(SessionsTest, OneIsFoundByTheBeginningOfItsIdUntilItHasEndedAndThenToo) {
  attach();
  const std::string id = begin();
  ASSERT_EQ(sessions_->list().size(), 1U);
  EXPECT_EQ(sessions_->overviews().size(), 1U);
  EXPECT_EQ(sessions_->find(id.substr(0, 6))->id, id);
  EXPECT_TRUE(sessions_->active(id));
  EXPECT_EQ(sessions_->active(id.substr(0, 6)), nullptr) << "only by its whole id";
  EXPECT_EQ(sessions_->find("").error().code, ErrorCode::kUsage);
  EXPECT_EQ(sessions_->find("zz").error().code, ErrorCode::kUsage);
  uint32_t news = 0;
  sessions_->when_ended([&news] { ++news; });
  const Result<transfer::View> cancelled = await(sessions_->cancel(id));
  ASSERT_TRUE(cancelled) << cancelled.error().message;
  run_until([this] { return sessions_->tasks().empty(); });
  EXPECT_NE(news, 0U);
  EXPECT_EQ(sessions_->ended(), std::vector{id});
  EXPECT_EQ(sessions_->find(id)->state, transfer::ViewState::kCancelled);
  EXPECT_TRUE(sessions_->overviews().empty());
  EXPECT_EQ(await(sessions_->pause(id)).error().code, ErrorCode::kUsage);
  EXPECT_EQ(sessions_->ended_by_code()[static_cast<size_t>(ErrorCode::kCancelled)], 1U);
  EXPECT_EQ(sessions_->ended_count(), 1U);
}

TEST_F(SessionsTest, WhatAnOperatorChangedIsInTheJournalWhenItIsAnswered) {
  attach();
  const std::string id = begin();
  run_until([&] { return sessions_->find(id)->state == transfer::ViewState::kQueued; });
  ASSERT_TRUE(await(sessions_->pause(id)));
  EXPECT_EQ((*services_->journal->session(id))->state, transfer::RecordState::kPaused);
  ASSERT_TRUE(await(sessions_->prioritize(id, 7)));
  EXPECT_EQ((*services_->journal->session(id))->priority, 7);
  EXPECT_EQ(await(sessions_->prioritize(id, 101)).error().code, ErrorCode::kUsage);
  EXPECT_EQ(await(sessions_->limit(id, 99'999)).error().message,
            "rate_bps = 99999 bit/s: 100 kbit/s is the least; give a unit, as in 10M or 10G");
  EXPECT_TRUE(await(sessions_->limit(id, 100'000)) && await(sessions_->limit(id, 0)));
  ASSERT_TRUE(await(sessions_->go_on(id)));
  EXPECT_EQ((*services_->journal->session(id))->state, transfer::RecordState::kActive);
  EXPECT_EQ(await(sessions_->go_on(id)).error().code, ErrorCode::kUsage) << "it is not paused";
}

TEST_F(SessionsTest, AsManyAsMayRunAndWaitAndNoMore) {
  attach();
  for (int i = 0; i < 4; ++i) EXPECT_FALSE(begin().empty());
  const Result<std::string> more = await(starter_->send(wishes()));
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, ErrorCode::kResources);
  EXPECT_NE(more.error().message.find("queue_max"), std::string::npos) << more.error().message;
  EXPECT_EQ(sessions_->find("").error().code, ErrorCode::kUsage);
  // Their order is that of their starts.
  const std::vector<transfer::View> all = sessions_->list();
  for (size_t i = 1; i < all.size(); ++i) EXPECT_LT(all[i - 1].started_unix_ns, all[i].started_unix_ns);
}

TEST_F(SessionsTest, ThoseThatHaveEndedAreRememberedInTurnAndOnce) {
  transfer::View view;
  view.state = transfer::ViewState::kSucceeded;
  for (size_t i = 0; i < Sessions::kEndedKept + 3; ++i) {
    view.id = std::to_string(1'000'000 + i);
    EXPECT_TRUE(sessions_->remember(view));
    EXPECT_FALSE(sessions_->remember(view));
  }
  EXPECT_EQ(sessions_->ended().size(), Sessions::kEndedKept);
  EXPECT_EQ(sessions_->ended().front(), "1000003");
  sessions_->forget_ended("1000003");
  EXPECT_EQ(sessions_->ended().front(), "1000004");
}

// A node that runs for months has as large a journal as one that was started yesterday.
TEST_F(SessionsTest, TheJournalForgetsWhileTheNodeRuns) {
  constexpr size_t kMore = 5;
  transfer::Record old;
  old.state = transfer::RecordState::kSucceeded;
  for (size_t i = 0; i < Sessions::kEndedInJournal + kMore; ++i) {
    old.id = std::to_string(1'000'000 + i);
    old.started_unix_ns = static_cast<int64_t>(i);  // in 1970
    ASSERT_TRUE(services_->journal->write(old.id, {.record = old}, transfer::Durability::kProcess));
  }
  transfer::View ended;
  ended.state = transfer::ViewState::kSucceeded;
  for (size_t i = 0; i < Sessions::kForgetEvery; ++i) {
    ended.id = std::to_string(2'000'000 + i);
    sessions_->ended_elsewhere(ended);
  }
  const auto in_journal = [this] { return services_->journal->sessions()->size(); };
  run_until([&in_journal] { return in_journal() == Sessions::kEndedInJournal; });
  EXPECT_EQ(services_->journal->sessions()->front().id, std::to_string(1'000'000 + kMore))
      << "the oldest went";
}

TEST_F(SessionsTest, AStopLetsGoOfThemAndTellsOnceWhenAllHave) {
  attach();
  const std::string id = begin();
  uint32_t told = 0;
  sessions_->stop([&told] { ++told; });
  EXPECT_TRUE(sessions_->stopping());
  run_until([&told] { return told != 0; });
  settle();
  EXPECT_EQ(told, 1U);
  EXPECT_TRUE(sessions_->tasks().empty());
  EXPECT_EQ((*services_->journal->session(id))->state, transfer::RecordState::kActive);
  EXPECT_EQ(await(starter_->send(wishes())).error().code, ErrorCode::kDaemonNotRunning);
}

TEST_F(SessionsTest, AnUnknownPeerAndAWrongWishAreErrorsOfTheCall) {
  attach();
  EXPECT_EQ(await(starter_->send(wishes("gamma"))).error().code, ErrorCode::kPeerUntrusted);
  Wishes wrong = wishes();
  wrong.sources = {path("missing")};
  EXPECT_EQ(await(starter_->send(wrong)).error().code, ErrorCode::kSourceUnreadable);
  EXPECT_TRUE(sessions_->list().empty());
  EXPECT_TRUE(services_->journal->sessions()->empty());
}

}  // namespace
}  // namespace sluice::node
