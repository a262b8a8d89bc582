// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/target.h"

#include <gtest/gtest.h>

namespace sluice::cli {
namespace {

TEST(Target, TheFirstColonDividesNodeAndPath) {
  const auto target = parse_target("dtn-2:data/a:b");
  ASSERT_TRUE(target);
  EXPECT_EQ(target->node, "dtn-2");
  EXPECT_EQ(target->path, "data/a:b");
}

TEST(Target, WhatIsNoTargetIsAUsageError) {
  for (const char* text :
       {"", "file", "/abs/file", "./b:x", "B!:x", "b:", ":x", "memory:10G", "null:", "b:\xff"}) {
    const auto target = parse_target(text);
    ASSERT_FALSE(target) << text;
    EXPECT_EQ(target.error().code, ErrorCode::kUsage) << text;
    EXPECT_EQ(target.error().message.find('\n'), std::string::npos);
  }
}

TEST(LocalPath, BecomesAbsoluteWithoutTouchingLinksOrParents) {
  EXPECT_EQ(*local_path("a/b", "/w"), "/w/a/b");
  EXPECT_EQ(*local_path("/x//y/./z", "/w"), "/x/y/z");
  EXPECT_EQ(*local_path("../a", "/w/v"), "/w/v/../a");
  EXPECT_EQ(*local_path("dir/", "/w"), "/w/dir/");
  EXPECT_EQ(*local_path(".", "/w"), "/w/");
  EXPECT_EQ(*local_path("a", "/"), "/a");
  EXPECT_EQ(*local_path("/", "/w"), "/");
}

TEST(SendRequest, MakesPathsAbsoluteAndPassesMemoryAndNullOn) {
  const auto request = send_request({"a", "memory:10K", "b:null:"}, "/w");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->peer(), "b");
  EXPECT_EQ(request->destination(), "null:");
  EXPECT_EQ(request->sources(0), "/w/a");
  EXPECT_EQ(request->sources(1), "memory:10240");
}

TEST(SendRequest, RefusesALocalDestinationAndABadMemorySize) {
  EXPECT_EQ(send_request({"a", "/tmp/b"}, "/w").error().code, ErrorCode::kUsage);
  EXPECT_EQ(send_request({"memory:lots", "b:null:"}, "/w").error().code, ErrorCode::kUsage);
  EXPECT_EQ(send_request({"b:x"}, "/w").error().code, ErrorCode::kUsage);
}

TEST(GetRequest, TakesSeveralSourcesOfOneNode) {
  const auto request = get_request({"b:data/x", "b:/srv/y", "in/"}, {}, "/w");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->peer(), "b");
  EXPECT_EQ(request->sources_size(), 2);
  EXPECT_EQ(request->sources(0), "data/x");
  EXPECT_EQ(request->destination(), "/w/in/");
  EXPECT_EQ(get_request({"b:memory:1K", "null:"}, {}, "/w")->sources(0), "memory:1024");
  EXPECT_EQ(get_request({"b:memory:1K", "null:"}, {}, "/w")->destination(), "null:");
}

TEST(GetRequest, RefusesSourcesOfTwoNodesAndLocalSources) {
  EXPECT_EQ(get_request({"b:x", "c:y", "in/"}, {}, "/w").error().code, ErrorCode::kUsage);
  EXPECT_EQ(get_request({"x", "in/"}, {}, "/w").error().code, ErrorCode::kUsage);
}

TEST(GetRequest, TakesWhatSeveralNodesHave) {
  const auto request = get_request({"data/x", "/srv/y", "in/"}, {"b", "c", "d"}, "/w");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->peer(), "b");
  ASSERT_EQ(request->more_peers_size(), 2);
  EXPECT_EQ(request->more_peers(1), "d");
  EXPECT_EQ(request->sources(0), "data/x");
  EXPECT_EQ(request->sources(1), "/srv/y");
  EXPECT_EQ(get_request({"memory:1K", "null:"}, {"b", "c"}, "/w")->sources(0), "memory:1024");
  EXPECT_EQ(get_request({"12:30.h5", "in/"}, {"b", "c"}, "/w")->sources(0), "12:30.h5")
      << "12 is no node of these";
  EXPECT_EQ(get_request({"data/x", "y"}, {"b"}, "/w")->more_peers_size(), 0);
}

TEST(GetRequest, NamesWhatIsWrongWithSeveralNodes) {
  const auto refused = [](const std::vector<std::string>& arguments, const std::vector<std::string>& from) {
    const auto request = get_request(arguments, from, "/w");
    return request ? std::string() : request.error().message;
  };
  EXPECT_NE(refused({"data/x", "y"}, {"b", "b"}).find("b twice"), std::string::npos);
  EXPECT_NE(refused({"data/x", "y"}, {"b", ""}).find("no name of a node"), std::string::npos);
  EXPECT_NE(refused({"b:data/x", "y"}, {"b", "c"}).find("write data/x"), std::string::npos);
  EXPECT_NE(refused({"c:data/x", "y"}, {"b", "c"}).find("write data/x"), std::string::npos);
  EXPECT_NE(refused({"y"}, {"b", "c"}).find("--from"), std::string::npos);
  EXPECT_NE(refused({"", "y"}, {"b", "c"}).find("empty path"), std::string::npos);
}

TEST(Target, NoticesThatTheOtherDirectionWasMeant) {
  EXPECT_EQ(get_request({"b:x", "b:y"}, {}, "/w").error().code, ErrorCode::kUsage);
  EXPECT_EQ(get_request({"b:x", "./b:y"}, {}, "/w")->destination(), "/w/b:y");
  EXPECT_EQ(get_request({"b:x", "12:30.h5"}, {}, "/w")->destination(), "/w/12:30.h5");
  EXPECT_EQ(send_request({"b:x", "b:y"}, "/w").error().code, ErrorCode::kUsage);
  EXPECT_EQ(send_request({"12:30.h5", "b:y"}, "/w")->sources(0), "/w/12:30.h5");
}

TEST(Target, RefusesARateWhoseUnitWasForgotten) {
  EXPECT_EQ(*rate_option("--rate", "10g"), 10'000'000'000U);
  EXPECT_EQ(*rate_option("--rate", "100000"), 100'000U);
  EXPECT_EQ(*rate_option("--min-rate", "1000", *options::find("min_rate_bps")), 1000U);
  for (const char* bad : {"10", "0", "99999", "fast"}) {
    const auto rate_bps = rate_option("--rate", bad);
    ASSERT_FALSE(rate_bps) << bad;
    EXPECT_EQ(rate_bps.error().code, ErrorCode::kUsage);
    EXPECT_EQ(rate_bps.error().message.find("--rate"), 0U);
  }
}

TEST(Target, WhatItRefusesCannotSteerATerminal) {
  const auto target = parse_target("memory:\x7f");
  ASSERT_FALSE(target);
  EXPECT_EQ(target.error().message.find('\x7f'), std::string::npos);
}

}  // namespace
}  // namespace sluice::cli
