// A transfer in the daemon: events in their order, effects performed, an end that is told once.
// SPDX-License-Identifier: Apache-2.0
#include "control/runtime/transfer_task.h"

#include "control/leg/negotiation.h"
#include "control/runtime/runtime_fixture.h"

namespace sluice::runtime {
namespace {

using transfer::RecordState;

const std::string kTaskId(32, 'e');

class TransferTaskTest : public RuntimeTest {
 protected:
  TransferTaskTest() { serve(); }
  ~TransferTaskTest() override { task_.reset(); }

  void start(std::unique_ptr<transfer::Transfer> transfer) {
    task_ = std::make_shared<TransferTask>(services_, std::move(transfer), gather::OpenSources(),
                                           [this](TransferTask& task) {
                                             EXPECT_EQ(&task, task_.get());
                                             ended_ += task.transfer().ended() && !task.over() ? 1 : 0;
                                             overs_ += task.over() ? 1 : 0;
                                           });
    task_->start();
  }
  void start_sending() {
    transfer::Request request;
    request.source_paths = {"memory:1M"};
    request.destination = "data/x";
    catalog::File file{.name = "memory-1048576", .shown = "memory:1M"};
    file.size_bytes = 1U << 20;
    start(std::make_unique<transfer::Transfer>(services_->settings, kTaskId, "beta", transfer::Role::kSource,
                                               std::move(request), std::vector{file}, async::unix_ns(),
                                               async::monotonic_ns()));
  }
  void start_called() {
    start(std::make_unique<transfer::Transfer>(services_->settings, kTaskId, "beta", async::unix_ns(),
                                               async::monotonic_ns()));
  }
  Status settled() {
    std::optional<Status> status;
    asio::co_spawn(io_, wait(task_, &status), asio::detached);
    run_until([&] { return status.has_value(); });
    return *status;
  }
  static asio::awaitable<void> wait(std::shared_ptr<TransferTask> task, std::optional<Status>* status) {
    status->emplace(co_await task->journal_settled());
  }
  std::optional<transfer::Record> record() {
    auto found = services_->journal->session(kTaskId);
    EXPECT_TRUE(found);
    return *found;
  }

  uint32_t ended_ = 0;
  uint32_t overs_ = 0;
  std::shared_ptr<TransferTask> task_;
};

TEST_F(TransferTaskTest, WhatWasAskedForIsInTheJournalOnceItIsSettled) {
  start_sending();
  EXPECT_TRUE(settled());
  ASSERT_TRUE(record());
  EXPECT_EQ(record()->state, RecordState::kActive);
  ASSERT_TRUE(record()->request);
  EXPECT_EQ(record()->request->destination, "data/x");
  EXPECT_FALSE(task_->transfer().ended());
}

TEST_F(TransferTaskTest, ItsEndIsToldAndThenThatItIsOverAndNothingIsHeardAfterThat) {
  start_sending();
  EXPECT_TRUE(settled());
  task_->post(transfer::Cancel{});
  run_until([this] { return task_->over(); });
  EXPECT_EQ(record()->state, RecordState::kCancelled);
  EXPECT_EQ(overs_, 1U);
  EXPECT_TRUE(task_->transfer().ended());
  task_->post(transfer::Cancel{});
  task_->post(transfer::TimerDue{});
  settle();
  EXPECT_EQ(overs_, 1U);
}

TEST_F(TransferTaskTest, AControlThatStopsLeavesItForTheNextOne) {
  start_sending();
  EXPECT_TRUE(settled());
  task_->post(transfer::Detach{});
  run_until([this] { return task_->over(); });
  EXPECT_FALSE(task_->transfer().ended());
  EXPECT_EQ(record()->state, RecordState::kActive);
  EXPECT_EQ(ended_, 0U);
}

TEST_F(TransferTaskTest, ItWaitsForAPlaceThatAnotherHasAndTakesItThen) {
  // One place is for sessions of this node, as one is kept for others.
  task_.reset();
  services_.reset();
  node_.sessions_max = 2;
  serve();
  services_->places.take("other", "", 0);
  start_sending();
  EXPECT_TRUE(settled());
  run_until([this] { return task_->view().state == transfer::ViewState::kQueued; });
  EXPECT_EQ(task_->view().queue.place, 1U);
  EXPECT_NE(task_->view().waiting_for.find("1st of 1"), std::string::npos) << task_->view().waiting_for;
  services_->places.leave("other");
  run_until([this] { return task_->view().state != transfer::ViewState::kQueued; });
  EXPECT_TRUE(services_->places.queue().runs(kTaskId));
  task_->post(transfer::Cancel{});
  run_until([this] { return task_->over(); });
  EXPECT_FALSE(services_->places.queue().runs(kTaskId)) << "whoever is over holds no place";
}

TEST_F(TransferTaskTest, APeersCallIsAnsweredOnItsOwnConnection) {
  attach();
  start_called();
  const auto connection = std::make_shared<FakeConnection>(io_, identity::Peer{.name = "beta"});
  task_->peer_called(connection, transfer::make_hello(kTaskId));
  run_until([&] { return !connection->said<transfer::Hello>().empty(); });
  EXPECT_EQ(connection->said<transfer::Hello>()[0].session_id, kTaskId);
  EXPECT_EQ(task_->stream(), connection);
  task_->drop_stream("a test");
  EXPECT_EQ(task_->stream(), nullptr);
  run_until([&] { return connection->closed(); });
}

}  // namespace
}  // namespace sluice::runtime
