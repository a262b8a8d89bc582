// SPDX-License-Identifier: Apache-2.0
#include "control/node/options.h"

#include <gtest/gtest.h>

#include "control/board/flow_table.h"
#include "control/runtime/sources.h"

namespace sluice::node {
namespace {

TEST(Options, NameWhatIsWrongAndFillInTheNodesDefaults) {
  config::Node node;
  Wishes asked;
  auto options = parse_options(asked, node);
  ASSERT_TRUE(options);
  EXPECT_EQ(options->lanes, node.lanes);
  EXPECT_EQ(options->chunk_bytes, 8192U);
  asked.crc = "none";
  EXPECT_EQ(parse_options(asked, node).error().code, ErrorCode::kUsage);
  asked.destination = transfer::kNullDestination;
  EXPECT_TRUE(parse_options(asked, node));
  asked.destination.clear();
  asked.crc = "md5";
  EXPECT_FALSE(parse_options(asked, node));
  asked.crc = "crc32c";
  asked.lanes = control::kLanesMax + 1;
  EXPECT_FALSE(parse_options(asked, node));
  asked.lanes = 2;
  asked.ip = "5";
  EXPECT_FALSE(parse_options(asked, node));
  asked.ip = "6";
  asked.chunk_bytes = 1001;
  EXPECT_FALSE(parse_options(asked, node));
  asked.chunk_bytes = 1024;
  EXPECT_EQ(parse_options(asked, node)->chunk_bytes, 1024U);
  EXPECT_FALSE(parse_options(asked, node)->chunk_auto);
  asked.chunk_bytes = 0;
  asked.chunk_auto = true;
  EXPECT_EQ(parse_options(asked, node)->chunk_bytes, wire::kChunkBytesMax) << "what the ports can do";
  EXPECT_TRUE(parse_options(asked, node)->chunk_auto);
  asked.chunk_auto = false;
}

TEST(Options, TheNodesProtectionCanOnlyBeRaised) {
  config::Node node;
  Wishes asked;
  EXPECT_EQ(parse_options(asked, node)->protection, wire::Protection::kAes128Gcm);
  asked.protection = "aes-256-gcm";
  EXPECT_EQ(parse_options(asked, node)->protection, wire::Protection::kAes256Gcm);
  asked.protection = "crc";
  const auto lowered = parse_options(asked, node);
  ASSERT_FALSE(lowered);
  EXPECT_EQ(lowered.error().code, ErrorCode::kUsage);
  EXPECT_NE(lowered.error().message.find("aes-128-gcm at least"), std::string::npos)
      << lowered.error().message;
  asked.protection = "rot13";
  EXPECT_NE(parse_options(asked, node).error().message.find("rot13"), std::string::npos);
  node.protection = "crc";
  asked.protection.clear();
  EXPECT_EQ(parse_options(asked, node)->protection, wire::Protection::kCrc);
  asked.protection = "aes-128-gcm";
  EXPECT_EQ(parse_options(asked, node)->protection, wire::Protection::kAes128Gcm);
}

TEST(Options, OfADeadlineAreATimeAndOneOfThreePolicies) {
  config::Node node;
  Wishes asked;
  asked.deadline_policy = "warn";
  EXPECT_EQ(parse_options(asked, node).error().code, ErrorCode::kUsage) << "of what deadline?";
  asked.deadline_unix_ns = 1;
  EXPECT_EQ(parse_options(asked, node)->deadline_policy, deadline::Policy::kWarn);
  EXPECT_EQ(parse_options(asked, node)->deadline_unix_ns, 1);
  asked.deadline_policy = "stop";
  EXPECT_EQ(parse_options(asked, node)->deadline_policy, deadline::Policy::kStop);
  asked.deadline_policy.clear();
  EXPECT_EQ(parse_options(asked, node)->deadline_policy, deadline::Policy::kRefuse);
  asked.deadline_policy = "panic";
  EXPECT_NE(parse_options(asked, node).error().message.find("panic"), std::string::npos);
  asked.deadline_policy.clear();
  asked.deadline_unix_ns = -1;
  EXPECT_FALSE(parse_options(asked, node));
}

TEST(Options, MemorySourcesHaveASize) {
  EXPECT_FALSE(runtime::parse_memory_source("/data/x")->has_value());
  EXPECT_EQ(**runtime::parse_memory_source("memory:1GiB"), 1ULL << 30);
  EXPECT_FALSE(runtime::parse_memory_source("memory:lots"));
  EXPECT_FALSE(runtime::parse_memory_source("memory:"));
}

}  // namespace
}  // namespace sluice::node
