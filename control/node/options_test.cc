// SPDX-License-Identifier: Apache-2.0
#include "control/node/options.h"

#include <gtest/gtest.h>

#include "control/board/flow_table.h"
#include "control/gather/sources.h"

namespace sluice::node {
namespace {

TEST(Options, NameWhatIsWrongAndFillInTheNodesDefaults) {
  config::Node node;
  node.transfer.lanes = 3;
  Wishes asked;
  const auto options = parse_options(asked, node);
  ASSERT_TRUE(options);
  EXPECT_EQ(*options, node.transfer);
  EXPECT_EQ(options->chunk_bytes, 8192U);
  asked.options.crc = wire::CrcKind::kNone;
  EXPECT_EQ(parse_options(asked, node).error().code, ErrorCode::kUsage);
  asked.destination = transfer::kNullDestination;
  EXPECT_TRUE(parse_options(asked, node));
  asked.destination.clear();
  asked.options = {.lanes = board::kLanesMax + 1};
  EXPECT_FALSE(parse_options(asked, node));
  asked.options = {.rate_bps = 2 * node.port_rate_bps};
  EXPECT_EQ(parse_options(asked, node)->rate_bps, node.port_rate_bps);
  asked.options = {.rate_bps = 100'000, .min_rate_bps = 100'001};
  EXPECT_FALSE(parse_options(asked, node));
  asked.options = {.rate_bps = 5};
  EXPECT_EQ(parse_options(asked, node).error().code, ErrorCode::kUsage);
  asked.options = {.chunk_bytes = 1001};
  EXPECT_FALSE(parse_options(asked, node));
  asked.options = {.chunk_bytes = 1024};
  EXPECT_EQ(parse_options(asked, node)->chunk_bytes, 1024U);
  EXPECT_FALSE(parse_options(asked, node)->chunk_auto);
  asked.options = {.chunk_auto = true};
  EXPECT_EQ(parse_options(asked, node)->chunk_bytes, wire::kChunkBytesMax) << "what the ports can do";
  EXPECT_TRUE(parse_options(asked, node)->chunk_auto);
}

TEST(Options, TheNodesProtectionCanOnlyBeRaised) {
  using wire::Protection;
  config::Node node;
  Wishes asked;
  EXPECT_EQ(parse_options(asked, node)->protection, Protection::kAes128Gcm);
  asked.options.protection = Protection::kAes256Gcm;
  EXPECT_EQ(parse_options(asked, node)->protection, Protection::kAes256Gcm);
  asked.options.protection = Protection::kCrc;
  const auto lowered = parse_options(asked, node);
  ASSERT_FALSE(lowered);
  EXPECT_EQ(lowered.error().code, ErrorCode::kUsage);
  EXPECT_NE(lowered.error().message.find("aes-128-gcm at least"), std::string::npos)
      << lowered.error().message;
  node.transfer.protection = Protection::kCrc;
  asked.options = {};
  EXPECT_EQ(parse_options(asked, node)->protection, Protection::kCrc);
  asked.options.protection = Protection::kAes128Gcm;
  EXPECT_EQ(parse_options(asked, node)->protection, Protection::kAes128Gcm);
}

TEST(Options, OfADeadlineAreATimeAndOneOfThreePolicies) {
  config::Node node;
  Wishes asked;
  asked.options.deadline_policy = deadline::Policy::kWarn;
  EXPECT_EQ(parse_options(asked, node).error().code, ErrorCode::kUsage) << "of what deadline?";
  asked.options.deadline_unix_ns = 1;
  EXPECT_EQ(parse_options(asked, node)->deadline_policy, deadline::Policy::kWarn);
  EXPECT_EQ(parse_options(asked, node)->deadline_unix_ns, 1);
  asked.options.deadline_policy.reset();
  EXPECT_EQ(parse_options(asked, node)->deadline_policy, deadline::Policy::kRefuse);
  asked.options.deadline_unix_ns = -1;
  EXPECT_FALSE(parse_options(asked, node));
}

TEST(Options, AUserOfTheHostIsRefusedWhatIsForOperators) {
  Wishes asked{.destination = "in/", .user = transfer::User{.uid = 1000, .name = "ada"}};
  EXPECT_TRUE(check_wishes(transfer::Role::kSource, asked));
  asked.options.mkdir = true;
  const Status refused = check_wishes(transfer::Role::kSource, asked);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "--mkdir is not for members of [control] users_group: make the directories, or ask an operator");
  asked.options = {.priority = 1};
  EXPECT_FALSE(check_wishes(transfer::Role::kSource, asked));
  asked.options = {.priority = -1};
  EXPECT_TRUE(check_wishes(transfer::Role::kSource, asked));
}

TEST(Options, AnIdOfASessionIs32HexDigits) {
  Wishes asked{.id = "0123456789abcdef0123456789abcdef", .destination = "in/"};
  EXPECT_TRUE(check_wishes(transfer::Role::kSource, asked));
  asked.source_node = "alpha";
  EXPECT_FALSE(check_wishes(transfer::Role::kSource, asked));
  asked.source_node.clear();
  for (const char* wrong : {"0", "0123456789ABCDEF0123456789ABCDEF", "0123456789abcdef0123456789abcdef0"}) {
    asked.id = wrong;
    const Status refused = check_wishes(transfer::Role::kSource, asked);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kUsage);
  }
}

TEST(Options, OnlyAnOrderIsBoundInItsBytes) {
  Wishes asked{.destination = "in/"};
  asked.options.max_bytes = 1;
  const Status refused = check_wishes(transfer::Role::kSource, asked);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUsage);
  asked.source_node = "alpha";
  EXPECT_TRUE(check_wishes(transfer::Role::kSource, asked)) << "by who orders it";
  asked.source_node.clear();
  asked.order.emplace();
  EXPECT_TRUE(check_wishes(transfer::Role::kSource, asked)) << "at the source";
}

TEST(Options, MemorySourcesHaveASize) {
  EXPECT_FALSE(gather::parse_memory_source("/data/x")->has_value());
  EXPECT_EQ(**gather::parse_memory_source("memory:1GiB"), 1ULL << 30);
  EXPECT_FALSE(gather::parse_memory_source("memory:lots"));
  EXPECT_FALSE(gather::parse_memory_source("memory:"));
}

}  // namespace
}  // namespace sluice::node
