// A node's control as a whole: what it finds in the journal when it starts, and how it stops.
// SPDX-License-Identifier: Apache-2.0
#include "control/node/manager.h"

#include "control/node/node_fixture.h"

namespace sluice::node {
namespace {

class ManagerTest : public NodeTest {
 protected:
  ~ManagerTest() override { manager_.reset(); }

  // The next life of this control.
  Status start() {
    manager_.reset();
    settle();
    auto exports = exports::Exports::open(node_.exports);
    auto journal = journal::Journal::open(node_.journal());
    EXPECT_TRUE(exports && journal);
    manager_ = std::make_unique<Manager>(io_, node_, *identity::load(root_), std::move(*exports),
                                         std::move(*journal));
    return manager_->start();
  }
  void write(const transfer::Record& record) const {
    auto journal = journal::Journal::open(node_.journal());
    ASSERT_TRUE(journal);
    ASSERT_TRUE((*journal)->write(record.id, {.record = record}, transfer::Durability::kPower));
  }
  static transfer::Record record_of(char digit, transfer::RecordState state) {
    transfer::Record record;
    record.id = id_of(digit);
    record.initiator = true;
    record.role = transfer::Role::kSource;
    record.state = state;
    record.started_unix_ns = digit;
    record.request.emplace();
    record.request->source_paths = {"memory:1M"};
    record.request->destination = "data/x";
    record.legs = {{.peer = "beta", .agreement = {}, .flows = {}}};
    if (transfer::has_ended(state)) record.error = Error{ErrorCode::kCancelled, "cancelled"};
    return record;
  }
  void stop() {
    manager_->stop();
    io_.restart();
    while (io_.run_one_for(std::chrono::seconds(120)) != 0) {
    }
    EXPECT_TRUE(io_.stopped()) << "the loop has nothing left to do";
    EXPECT_EQ(manager_->settle(std::chrono::seconds(60)), "");
  }

  std::unique_ptr<Manager> manager_;
};

TEST_F(ManagerTest, WhatIsInTheJournalGoesOnOrIsRemembered) {
  write(record_of('5', transfer::RecordState::kPaused));
  write(record_of('6', transfer::RecordState::kCancelled));
  ASSERT_TRUE(start());
  const std::vector<transfer::View> all = manager_->sessions().list();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].id, id_of('5'));
  EXPECT_TRUE(manager_->sessions().active(id_of('5')));
  EXPECT_EQ(manager_->sessions().ended(), std::vector{id_of('6')});
  EXPECT_GT(manager_->sessions().next_start_ns(), int64_t{'6'}) << "those that begin come after them";
  stop();
}

TEST_F(ManagerTest, WhatRanUnderALeaseThatIsOverDoesNotGoOn) {
  transfer::Record over = record_of('5', transfer::RecordState::kPaused);
  over.lease = transfer::Lease{.name = "0123456789abcdef", .epoch = 3};
  transfer::Record good = record_of('6', transfer::RecordState::kPaused);
  good.lease = transfer::Lease{.name = "0123456789abcdef", .epoch = 4};
  write(over);
  write(good);
  {
    auto journal = journal::Journal::open(node_.journal());
    ASSERT_TRUE((*journal)->write({.lease = *good.lease, .holder = "", .used_unix_ns = async::unix_ns()}));
  }
  ASSERT_TRUE(start());
  run_until([&] { return manager_->sessions().ended() == std::vector{id_of('5')}; });
  EXPECT_EQ(manager_->sessions().find(id_of('5'))->error->code, ErrorCode::kSuperseded);
  EXPECT_TRUE(manager_->sessions().active(id_of('6')));
  stop();
}

TEST_F(ManagerTest, AStopLeavesTheLoopWithoutWorkAndSessionsForTheNextControl) {
  write(record_of('5', transfer::RecordState::kPaused));
  ASSERT_TRUE(start());
  stop();
  ASSERT_TRUE(start());
  EXPECT_TRUE(manager_->sessions().active(id_of('5')));
  stop();
}

TEST_F(ManagerTest, AFileOfTrustThatIsWrongIsFoundAtTheStart) {
  std::ofstream(root_ / "trusted" / "beta.toml") << "address = 7\n";
  const Status status = start();
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("beta.toml"), std::string::npos) << status.error().message;
}

TEST_F(ManagerTest, ItTellsOfItselfWithoutADataplaneToo) {
  ASSERT_TRUE(start());
  const Result<NodeInfo> info = await(manager_->report().info());
  ASSERT_TRUE(info);
  EXPECT_EQ(info->name, "alpha");
  ASSERT_EQ(info->peers.size(), 1U);
  EXPECT_EQ(info->peers[0].name, "beta");
  EXPECT_FALSE(info->dataplane_attached);
  EXPECT_FALSE(manager_->report().dataplane_state());
  EXPECT_EQ(manager_->report().counters().error().code, ErrorCode::kDaemonNotRunning);
  const metrics::NodeFigures figures = manager_->report().figures();
  EXPECT_EQ(figures.name, "alpha");
  EXPECT_FALSE(figures.callers) << "it does not listen";
  EXPECT_TRUE(figures.sessions.empty());
  stop();
}

TEST_F(ManagerTest, ALogThatIsNotThereAndALevelThatDoesNotExistAreErrorsOfUsage) {
  write(record_of('5', transfer::RecordState::kPaused));
  write(record_of('6', transfer::RecordState::kCancelled));
  ASSERT_TRUE(start());
  EXPECT_TRUE(manager_->logs().log(id_of('5')));
  EXPECT_EQ(manager_->logs().log(id_of('6')).error().code, ErrorCode::kUsage);
  EXPECT_EQ(manager_->logs().set_level(id_of('5'), "loud").error().code, ErrorCode::kUsage);
  EXPECT_EQ(*manager_->logs().set_level(id_of('5').substr(0, 5), "packets"), id_of('5'));
  EXPECT_EQ(await(manager_->logs().set_component_level("nobody", "debug")).error().code, ErrorCode::kUsage);
  stop();
}

}  // namespace
}  // namespace sluice::node
