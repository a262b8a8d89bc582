// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "control/audit/audit_log.h"
#include "control/audit/lines.h"
#include "dataplane/base/unique_fd.h"

namespace sluice::audit {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int64_t kNow = 1'790'000'000'123'456'789;  // 2026-09-21

transfer::View ended_view(size_t files) {
  transfer::View view;
  view.id = "0123456789abcdef0123456789abcdef";
  view.role = transfer::Role::kDestination;
  view.peer = "beta";
  view.started_unix_ns = kNow - 1'500'000'000;
  view.bytes_total = 10 * files;
  view.summary.bytes_done = 10 * files;
  for (size_t i = 0; i < files; ++i)
    view.files.push_back({.object = static_cast<uint32_t>(i),
                          .source = "in/\xff\n",
                          .destination = "/srv/in",
                          .size_bytes = 10,
                          .done = true,
                          .digest_destination = "aa"});
  return view;
}

TEST(Audit, ASessionsEndIsOneLineThatSaysWhoMovedWhat) {
  const std::string text = session_ended(ended_view(1), kNow);
  EXPECT_EQ(text.find('\n'), text.size() - 1);
  const Json json = Json::parse(text);
  EXPECT_EQ(json["time"], "2026-09-21T14:13:20.123456Z");
  EXPECT_EQ(json["started"], "2026-09-21T14:13:18.623456Z");
  EXPECT_EQ(json["event"], "session_ended");
  EXPECT_EQ(json["asked_by"], "peer");
  EXPECT_EQ(json["role"], "destination");
  EXPECT_EQ(json["peer"], "beta");
  EXPECT_EQ(json["result"], "ok");
  EXPECT_EQ(json["bytes"], 10);
  ASSERT_EQ(json["files"].size(), 1U);
  EXPECT_EQ(json["files"][0]["source"], "in/??") << "a line stays a line";
  EXPECT_EQ(json["files"][0]["digest"], "aa");
}

TEST(Audit, WhoOfAPeerItWasAndWhomThatIsHere) {
  transfer::View view = ended_view(0);
  view.asker.mapped = transfer::Mapped{.user = {.uid = 1001, .name = "asmith"}, .peer_user = "alice"};
  const Json ended = Json::parse(session_ended(view, kNow));
  const Json begun = Json::parse(session_begun("0123456789abcdef0123456789abcdef", transfer::Role::kUnknown,
                                               false, "beta", {}, kNow, "", view.asker.mapped));
  for (const Json& json : {ended, begun}) {
    EXPECT_EQ(json["asked_by"], "peer");
    EXPECT_EQ(json["user"], "asmith");
    EXPECT_EQ(json["uid"], 1001);
    EXPECT_EQ(json["peer_user"], "alice");
  }
  const Json refused = Json::parse(user_refused("0123456789abcdef0123456789abcdef", "beta", "eve\n",
                                                {ErrorCode::kPeerUntrusted, "why"}, kNow));
  EXPECT_EQ(refused["event"], "user_refused");
  EXPECT_EQ(refused["peer_user"], "eve?");
  EXPECT_EQ(refused["result"], "peer_untrusted");
}

TEST(Audit, WhatAnotherNodeOrderedWasAskedForByAPeer) {
  transfer::View view = ended_view(0);
  view.asker.of_this_node = true;  // it calls the destination
  view.asker.ordered_by = "home";
  const Json ended = Json::parse(session_ended(view, kNow));
  const Json begun =
      Json::parse(session_begun(view.id, transfer::Role::kSource, true, "beta", std::nullopt, kNow, "home"));
  for (const Json& json : {ended, begun}) {
    EXPECT_EQ(json["asked_by"], "peer");
    EXPECT_EQ(json["ordered_by"], "home");
  }
}

TEST(Audit, WhoOrdersIsNeitherEnd) {
  transfer::View view = ended_view(0);
  view.asker.of_this_node = true;
  view.asker.source_node = "alpha";
  const Json json = Json::parse(session_ended(view, kNow));
  EXPECT_EQ(json["asked_by"], "operator");
  EXPECT_EQ(json["role"], "order");
  EXPECT_EQ(json["source"], "alpha");
  EXPECT_EQ(json["destination"], "beta");
}

TEST(Audit, AFailureIsNamed) {
  transfer::View view = ended_view(0);
  view.error = Error{ErrorCode::kIntegrity, "digests differ\nreally"};
  const Json json = Json::parse(session_ended(view, kNow));
  EXPECT_EQ(json["result"], "integrity");
  EXPECT_EQ(json["error"], "digests differ?really");
}

TEST(Audit, OfManyFilesSomeAreTold) {
  const Json json = Json::parse(session_ended(ended_view(kFilesTold + 7), kNow));
  EXPECT_EQ(json["files"].size(), kFilesTold);
  EXPECT_EQ(json["files_not_told"], 7);
}

TEST(Audit, ChangesOfNamesAreToldAlsoWhenTheyAreRefused) {
  const Json done = Json::parse(names_changed("beta", names::Remove{.path = "data/x", .recursive = true},
                                              names::Done{.entries = 3}, kNow));
  EXPECT_EQ(done["peer"], "beta");
  EXPECT_EQ(done["result"], "ok");
  EXPECT_EQ(done["done"], 3);
  EXPECT_NE(done["asked"].get<std::string>().find("data/x"), std::string::npos);
  const Json refused = Json::parse(
      names_changed("", names::MakeDirectory{.path = "x"}, Error{ErrorCode::kOutsideExports, "no"}, kNow));
  EXPECT_EQ(refused["asked_by"], "operator");
  EXPECT_FALSE(refused.contains("peer"));
  EXPECT_EQ(refused["result"], "outside_exports");
  const Json as_user =
      Json::parse(names_changed("", names::MakeDirectory{.path = "x"}, names::Done{.entries = 1}, kNow,
                                transfer::User{.uid = 1001, .name = "carol"}));
  EXPECT_EQ(as_user["asked_by"], "user");
  EXPECT_EQ(as_user["user"], "carol");
  EXPECT_EQ(as_user["uid"], 1001);
}

class AuditLogTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = "/tmp/sluice-audit-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::vector<std::string> lines(const fs::path& file) const {
    std::ifstream in(file);
    std::vector<std::string> all;
    for (std::string line; std::getline(in, line);) all.push_back(line);
    return all;
  }
  fs::path folder_;
};

TEST_F(AuditLogTest, LinesOfSeveralThreadsStayWhole) {
  const AuditLog log(folder_ / "audit.ndjson");
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&log, i] {
      for (int n = 0; n < 100; ++n) log.append(std::string(1000, static_cast<char>('a' + i)) + "\n");
    });
  for (std::thread& thread : threads) thread.join();
  const std::vector<std::string> all = lines(folder_ / "audit.ndjson");
  ASSERT_EQ(all.size(), 400U);
  for (const std::string& line : all) EXPECT_EQ(line, std::string(1000, line.front()));
  struct stat info {};
  ASSERT_EQ(::stat((folder_ / "audit.ndjson").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
}

TEST_F(AuditLogTest, ARotatedFileIsLeftAndALinkIsNotFollowed) {
  const AuditLog log(folder_ / "audit.ndjson");
  log.append("one\n");
  fs::rename(folder_ / "audit.ndjson", folder_ / "audit.ndjson.1");
  log.append("two\n");
  EXPECT_EQ(lines(folder_ / "audit.ndjson.1"), std::vector<std::string>{"one"});
  EXPECT_EQ(lines(folder_ / "audit.ndjson"), std::vector<std::string>{"two"});
  fs::remove(folder_ / "audit.ndjson");
  fs::create_symlink(folder_ / "elsewhere", folder_ / "audit.ndjson");
  log.append("three\n");
  EXPECT_FALSE(fs::exists(folder_ / "elsewhere"));
  EXPECT_EQ(log.lost(), 1U);
}

TEST_F(AuditLogTest, WhatIsNoFileIsRefusedAndCounted) {
  const AuditLog log(folder_ / "audit.ndjson");
  fs::create_directory(folder_ / "audit.ndjson");
  log.append("one\n");
  fs::remove(folder_ / "audit.ndjson");
  ASSERT_EQ(::mkfifo((folder_ / "audit.ndjson").c_str(), 0600), 0);
  log.append("two\n");  // nobody reads: it does not wait
  const UniqueFd reader(::open((folder_ / "audit.ndjson").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  log.append("three\n");
  char got = 0;
  EXPECT_LE(::read(reader.get(), &got, 1), 0);
  EXPECT_EQ(log.lost(), 3U);
  fs::remove(folder_ / "audit.ndjson");
  log.append("four\n");
  EXPECT_EQ(lines(folder_ / "audit.ndjson"), std::vector<std::string>{"four"});
  EXPECT_EQ(log.lost(), 3U);
}

}  // namespace
}  // namespace sluice::audit
