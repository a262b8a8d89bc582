// Control asks a dataplane for something, and each answer comes to whoever asked.
// SPDX-License-Identifier: Apache-2.0
#include "control/attach/attached.h"

#include <fmt/format.h>

#include "control/attach/attach_fixture.h"

namespace sluice::attach {
namespace {

using board::AttachKind;
using board::AttachRequest;

class AttachedTest : public AttachFixture {
 protected:
  AttachedTest() : dataplane_(folder_ / "socket") {
    asio::co_spawn(io_, dataplane_.serve(io_), asio::detached);
    const auto link = run(BoardLink::attach(io_, folder_ / "socket"));
    EXPECT_TRUE(link) << link.error().message;
    if (link) board_ = std::make_shared<AttachedBoard>(*link);
  }
  ~AttachedTest() override {
    if (board_) board_->link().close();
    io_.poll();
  }

  template <typename T>
  static asio::awaitable<void> keep(asio::awaitable<T> what, std::optional<T>* result) {
    result->emplace(co_await std::move(what));
  }
  static asio::awaitable<bool> and_end(asio::awaitable<void> what) {
    co_await std::move(what);
    co_return true;
  }
  template <typename T>
  T run(asio::awaitable<T> what) {
    std::optional<T> result;
    asio::co_spawn(io_, keep(std::move(what), &result), asio::detached);
    until([&] { return result.has_value(); });
    return std::move(result.value());
  }
  void run(asio::awaitable<void> what) { EXPECT_TRUE(run(and_end(std::move(what)))); }
  Status open_object(int status, bool may_exist) {
    dataplane_.status = status;
    const AttachRequest request{.session = 3, .object = 300, .size = 9};
    return run(board_->open_object(request, -1, may_exist));
  }

  FakeDataplane dataplane_;
  std::shared_ptr<AttachedBoard> board_;
};

TEST_F(AttachedTest, SaysWhatTheBoardSays) {
  EXPECT_FALSE(board_->lost());
  EXPECT_EQ(board_->generation(), 77U);
  EXPECT_EQ(board_->port().udp_port_base, 47000);
  constexpr auto kCounter = static_cast<board::Counter>(0);
  for (uint32_t worker = 0; worker < board::kWorkersMax; ++worker)
    dataplane_.board().workers[worker].counters[0] = 10 + worker;
  EXPECT_EQ(board_->counter(kCounter), 21U) << "of the two workers that there are";
}

TEST_F(AttachedTest, HandsOverTheKeysOfAFlow) {
  AttachRequest request{.flow = 7, .tag = 9, .protection = 2};
  std::fill(std::begin(request.secret), std::end(request.secret), 0x77);
  EXPECT_TRUE(run(board_->hand_over_keys(request)));
  ASSERT_EQ(dataplane_.requests.size(), 1U);
  const AttachRequest& came = dataplane_.requests[0];
  EXPECT_EQ(came.kind, AttachKind::kFlowKeys);
  EXPECT_EQ(came.flow, 7U);
  EXPECT_EQ(came.tag, 9U);
  EXPECT_EQ(came.protection, 2U);
  EXPECT_EQ(came.secret[31], 0x77);
  EXPECT_EQ(request.secret[31], 0) << "it is wiped";
  dataplane_.status = EBUSY;
  const Status refused = run(board_->hand_over_keys(request));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("keys"), std::string::npos);
}

TEST_F(AttachedTest, OpensObjects) {
  EXPECT_TRUE(open_object(0, false));
  ASSERT_EQ(dataplane_.requests.size(), 1U);
  EXPECT_EQ(dataplane_.requests[0].kind, AttachKind::kOpenObject);
  EXPECT_EQ(dataplane_.requests[0].session, 3U);
  EXPECT_EQ(dataplane_.requests[0].object, 300U);
  EXPECT_EQ(dataplane_.requests[0].size, 9U);
}

TEST_F(AttachedTest, AnObjectMayBeThereOnlyWhenItWasOpenedBefore) {
  EXPECT_TRUE(open_object(EEXIST, true));
  const Status status = open_object(EEXIST, false);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kInternal);
  EXPECT_NE(status.error().message.find("object 300"), std::string::npos);
}

TEST_F(AttachedTest, WhatLacksIsToldFromWhatIsWrong) {
  EXPECT_EQ(open_object(ENOMEM, true).error().code, ErrorCode::kResources);
  EXPECT_EQ(open_object(ENOBUFS, true).error().code, ErrorCode::kResources);
  EXPECT_EQ(open_object(EINVAL, true).error().code, ErrorCode::kInternal);
  EXPECT_FALSE(board_->lost());
}

TEST_F(AttachedTest, ADataplaneThatEndsInsteadOfAnsweringIsLost) {
  dataplane_.end_at = AttachKind::kOpenObject;
  EXPECT_EQ(open_object(0, true).error().code, ErrorCode::kDaemonNotRunning);
  EXPECT_TRUE(board_->lost());
  EXPECT_EQ(open_object(0, true).error().code, ErrorCode::kDaemonNotRunning);
  EXPECT_EQ(run(board_->fetch_object(SessionSlotId(3), ObjectId(1))).error().code,
            ErrorCode::kDaemonNotRunning);
}

TEST_F(AttachedTest, ALevelOfTheLogThatThereIsNotIsNotBelieved) {
  const auto ask = [this] { return run(board_->log_level(std::nullopt)); };
  dataplane_.value = 3;
  ASSERT_TRUE(ask());
  EXPECT_EQ(*ask(), 3U);
  EXPECT_EQ(dataplane_.requests[0].level, board::kLogLevelAsked);
  dataplane_.value = board::kLogLevels;
  EXPECT_FALSE(ask());
  ASSERT_FALSE(run(board_->log_level(1)));
  EXPECT_EQ(dataplane_.requests.back().level, 1U);
}

TEST_F(AttachedTest, FetchesADescriptorOrNothing) {
  const auto fetch = [this] { return run(board_->fetch_object(SessionSlotId(3), ObjectId(8))); };
  const auto fetched = fetch();
  ASSERT_TRUE(fetched) << fetched.error().message;
  EXPECT_EQ(::lseek(fetched->get(), 0, SEEK_END), static_cast<off_t>(sizeof(board::Board)));
  EXPECT_EQ(dataplane_.requests[0].kind, AttachKind::kFetchObject);
  EXPECT_EQ(dataplane_.requests[0].object, 8U);
  dataplane_.status = ENOENT;
  EXPECT_FALSE(fetch());
  dataplane_.status = 0;
  dataplane_.with_fd = false;
  EXPECT_FALSE(fetch()) << "an answer without a descriptor";
}

// A control that comes back fetches what all of its sessions had open. Each answer is that of its own
// request, also between others.
TEST_F(AttachedTest, EachOfManyFetchesGetsItsOwnDescriptor) {
  constexpr uint32_t kSessions = 8;
  constexpr uint32_t kObjects = 8;
  const auto size_of = [](uint32_t session, uint32_t object) { return session * 100 + object + 1; };
  const auto is_open = [](uint32_t session, uint32_t object) { return (session + object) % 5 != 0; };
  dataplane_.fetched = [&](const AttachRequest& request) {
    if (!is_open(request.session, request.object)) return UniqueFd();
    UniqueFd fd(::memfd_create("object-test", MFD_CLOEXEC));
    EXPECT_EQ(::ftruncate(fd.get(), size_of(request.session, request.object)), 0);
    return fd;
  };
  struct Fetch {
    uint32_t session = 0;
    uint32_t object = 0;
    std::optional<Result<UniqueFd>> result;
  };
  std::vector<Fetch> fetches;
  for (uint32_t session = 0; session < kSessions; ++session) {
    for (uint32_t object = 0; object < kObjects; ++object)
      fetches.push_back({.session = session, .object = object, .result = std::nullopt});
  }
  for (Fetch& fetch : fetches) {
    asio::co_spawn(
        io_, keep(board_->fetch_object(SessionSlotId(fetch.session), ObjectId(fetch.object)), &fetch.result),
        asio::detached);
  }
  const AttachRequest between{.session = 3, .object = 300, .size = 9};
  EXPECT_TRUE(run(board_->open_object(between, -1, false))) << "asked last, answered last";
  for (const Fetch& fetch : fetches) {
    SCOPED_TRACE(fmt::format("session {}, object {}", fetch.session, fetch.object));
    ASSERT_TRUE(fetch.result.has_value());
    ASSERT_EQ(static_cast<bool>(*fetch.result), is_open(fetch.session, fetch.object));
    if (!*fetch.result) continue;
    EXPECT_EQ(::lseek((*fetch.result)->get(), 0, SEEK_END),
              static_cast<off_t>(size_of(fetch.session, fetch.object)));
  }
  EXPECT_FALSE(board_->lost());
}

TEST_F(AttachedTest, AClosedSessionsSlotIsFree) {
  const SessionSlotId session = *board_->flows().table().take_session();
  EXPECT_TRUE(run(board_->close_session(session)));
  EXPECT_EQ(dataplane_.requests.back().kind, AttachKind::kCloseSession);
  EXPECT_EQ(dataplane_.requests.back().session, session.value());
  EXPECT_FALSE(board_->flows().table().session_taken(session));
}

TEST_F(AttachedTest, ASessionInUseKeepsItsSlot) {
  const SessionSlotId session = *board_->flows().table().take_session();
  dataplane_.status = EBUSY;
  EXPECT_FALSE(run(board_->close_session(session)));
  EXPECT_TRUE(board_->flows().table().session_taken(session));
  dataplane_.status = 0;
  EXPECT_TRUE(run(board_->close_session(session)));
}

// Asking would hold up the dataplane.
TEST_F(AttachedTest, ASessionWithAnOpenFlowIsNotAskedFor) {
  const SessionSlotId session = *board_->flows().table().take_session();
  const board::FlowConfig config{.flow_id = 5, .session = session.value(), .local_port = 47000};
  board_->flows().open_flow(FlowSlotId(2), config, nullptr);
  EXPECT_FALSE(run(board_->close_session(session)));
  EXPECT_TRUE(dataplane_.requests.empty());
  ASSERT_TRUE(dataplane_.board().workers[0].events.push(
      {.kind = board::EventKind::kFlowClosed, .flow = 2, .tag = dataplane_.board().flows[2].config.tag}));
  board_->flows().drain();
  EXPECT_TRUE(run(board_->close_session(session)));
}

TEST_F(AttachedTest, AClosedSessionOfALostDataplaneIsClosed) {
  const SessionSlotId session = *board_->flows().table().take_session();
  dataplane_.end_at = AttachKind::kCloseSession;
  EXPECT_TRUE(run(board_->close_session(session)));
  EXPECT_TRUE(board_->lost());
}

TEST_F(AttachedTest, SessionsThatNobodyGoesOnWithAreClosed) {
  const SessionSlotId mine = *board_->flows().table().take_session();
  run(board_->close_leftover_sessions());
  ASSERT_EQ(dataplane_.requests.size(), board::kSessionsMax - 1);
  for (const AttachRequest& request : dataplane_.requests) {
    EXPECT_EQ(request.kind, AttachKind::kCloseSession);
    EXPECT_NE(request.session, mine.value());
  }
}

TEST_F(AttachedTest, ClosingLeftoversEndsWithTheDataplane) {
  dataplane_.end_at = AttachKind::kCloseSession;
  run(board_->close_leftover_sessions());
  EXPECT_EQ(dataplane_.requests.size(), 1U);
}

}  // namespace
}  // namespace sluice::attach
