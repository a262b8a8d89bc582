// SPDX-License-Identifier: Apache-2.0
#include "control/node/verify.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <filesystem>
#include <fstream>
#include <latch>
#include <thread>

namespace sluice::node {
namespace {

namespace fs = std::filesystem;

// Two exports. That of `hung` has a file system that lets no call return until it is let go.
class VerifyTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::vector<config::Export> configs;
    for (const char* name : {"good", "hung"}) {
      fs::create_directories(root_ / name);
      std::ofstream(root_ / name / "f") << "hello";
      configs.push_back({.name = name, .path = root_ / name, .read = true, .write = false});
    }
    auto opened = exports::Exports::open(configs);
    ASSERT_TRUE(opened) << opened.error().message;
    exports_ = std::make_shared<const exports::Exports>(std::move(*opened));
    pool_.run(
        async::KeyedPool::Key{.name = "hung"},
        [this] {
          release_.wait();
          return 0;
        },
        [](int) {});
  }
  void TearDown() override {
    release_.count_down();
    EXPECT_TRUE(pool_.settle(std::chrono::minutes(1)));
    guard_.reset();
    loop_.join();
    fs::remove_all(root_);
  }

  void run(const std::string& export_name, const VerifyReport& report) {
    ToVerify what;
    VerifyFile file{.shown = "f", .path = (root_ / export_name / "f").string(), .problem = {}};
    file.layout = {.size_bytes = 6, .extent_bytes = 1U << 20, .crc_kind = wire::CrcKind::kCrc64Ecma};
    file.whole = true;
    what.files.push_back(std::move(file));
    verify(
        exports_, std::make_shared<const ToVerify>(std::move(what)),
        [&](const std::string&) { return async::KeyedPart{.pool = pool_, .key = {.name = export_name}}; },
        report);
  }

  const fs::path root_ = fs::temp_directory_path() / ("verify-test-" + std::to_string(::getpid()));
  std::latch release_{1};
  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> guard_ = asio::make_work_guard(io_);
  std::thread loop_{[this] { io_.run(); }};
  async::KeyedPool pool_{io_, 1};
  std::shared_ptr<const exports::Exports> exports_;
};

TEST_F(VerifyTest, AnExportThatHangsHoldsUpNeitherOthersNorWhoLeaves) {
  std::vector<VerifyProgress> told;
  run("hung", [&](const VerifyProgress& progress) {
    told.push_back(progress);
    return told.size() < 2;
  });
  ASSERT_EQ(told.size(), 2U) << "its client left while it waited";
  EXPECT_FALSE(told.back().done);
  EXPECT_EQ(told.back().bytes_total, 6U);

  told.clear();
  run("good", [&](const VerifyProgress& progress) {
    told.push_back(progress);
    return true;
  });
  ASSERT_FALSE(told.empty());
  EXPECT_TRUE(told.back().done);
  EXPECT_EQ(told.back().problem, "has 5 bytes, the journal knows 6");
}

// A source is as it was, whatever became of the session.
TEST(FilesToVerify, AtTheSourceOfAFailedSessionThereIsNothingThatCouldBeBad) {
  transfer::Saved saved;
  saved.record = {.id = "abc", .role = transfer::Role::kSource, .state = transfer::RecordState::kFailed};
  saved.record.legs.push_back({.agreement = {{.extent_bytes = 1U << 20}}});
  saved.files = {{.shown = "/d/f", .path = "/d/f", .size_bytes = 5}};
  const auto failed = files_to_verify(saved);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::kUsage);
  EXPECT_NE(failed.error().message.find("has arrived"), std::string::npos) << failed.error().message;
  saved.files.push_back(saved.files.front());
  saved.files.back().state = catalog::FileState::kDone;
  const auto partly = files_to_verify(saved);
  ASSERT_TRUE(partly);
  EXPECT_EQ(partly->files.size(), 1U);
  EXPECT_EQ(partly->names_unchecked, 1U);
}

TEST_F(VerifyTest, WhatIsNeverReadIsNotCalledGood) {
  std::thread ends([this] { (void)pool_.settle(std::chrono::milliseconds(1)); });
  std::vector<VerifyProgress> told;
  run("hung", [&](const VerifyProgress& progress) {
    told.push_back(progress);
    return true;
  });
  ends.join();
  EXPECT_FALSE(told.back().good);
  EXPECT_NE(told.back().problem.find("sluice-control ends"), std::string::npos) << told.back().problem;
}

}  // namespace
}  // namespace sluice::node
