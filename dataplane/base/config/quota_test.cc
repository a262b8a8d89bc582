// [[export.quota]]: what is read, whose counts, and what is refused.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "dataplane/base/config/config.h"

namespace sluice::config {
namespace {

Result<Node> parse_quotas(std::string_view text) { return parse(text, "/srv/node", "node.toml"); }

bool names(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(Quotas, OfAnExport) {
  const auto quotas = [](const std::string& more) {
    return std::string(
               "[node]\nname = \"alpha\"\n[[export]]\nname = \"drop\"\npath = \"/srv/drop\"\nmode = "
               "\"w\"\n") +
           more;
  };
  const auto problem = [&](const std::string& more) {
    const auto node = parse_quotas(quotas(more));
    return node ? std::string() : node.error().message;
  };
  const auto node = parse_quotas(quotas(R"(
[[export.quota]]
session_bytes = "10GiB"
session_files = 1000
[[export.quota]]
peer = "beta"
sessions_max = 2
rate = "2.5G"
)"));
  ASSERT_TRUE(node) << node.error().message;
  const Export& drop = node->exports[0];
  EXPECT_EQ(drop.quota_of("gamma"), (Quota{.session_bytes = 10ULL << 30, .session_files = 1000}));
  // The peer's own counts alone: nothing of the one for all.
  EXPECT_EQ(drop.quota_of("beta"), (Quota{.peer = "beta", .sessions_max = 2, .rate_bps = 2'500'000'000}));
  EXPECT_EQ(parse_quotas(quotas(""))->exports[0].quota_of("beta"), Quota());

  EXPECT_TRUE(names(problem("[[export.quota]]\npeer = \"beta\"\n"), "peer beta limits nothing"));
  EXPECT_TRUE(names(problem("[[export.quota]]\nrate = \"1G\"\n[[export.quota]]\nrate = \"2G\"\n"),
                    "two for every peer"));
  EXPECT_TRUE(names(problem("peers = [\"beta\"]\n[[export.quota]]\npeer = \"gamma\"\nrate = \"1G\"\n"),
                    "peer gamma may not use the export"));
  EXPECT_TRUE(names(problem("[[export.quota]]\nsession_byte = 1\n"),
                    "in [[export.quota]]; the nearest known one is [[export.quota]] session_bytes"));
  EXPECT_TRUE(names(problem("[[export.quota]]\nsessions_max = 0\n"), "must be 1..4096 sessions"));
  EXPECT_TRUE(names(problem("[export.quota]\nrate = \"1G\"\n"), "two brackets"));
  EXPECT_TRUE(names(problem("[\"export.quota\"]\npeer = \"beta\"\n"), "unknown section"));
}

TEST(Quotas, OfUsersStandBesideThoseOfPeers) {
  const auto parse_export = [](const std::string& more) {
    return parse_quotas("[node]\nname = \"alpha\"\n[[export]]\nname = \"drop\"\npath = \"/srv/drop\"\n" +
                        more);
  };
  const auto node = parse_export(
      "[[export.quota]]\nsessions_max = 9\n[[export.quota]]\nuser = \"*\"\nsessions_max = 2\n"
      "[[export.quota]]\nuser = \"ada\"\nsession_files = 5\n");
  ASSERT_TRUE(node) << node.error().message;
  const Export& drop = node->exports[0];
  EXPECT_EQ(drop.quota_of_user("ada"), (Quota{.user = "ada", .session_files = 5}));
  EXPECT_EQ(drop.quota_of_user("ben").sessions_max, 2U);
  EXPECT_EQ(drop.quota_of("ada").sessions_max, 9U) << "a peer of that name is no user";
  const auto problem = [&](const std::string& more) {
    return parse_export("[[export.quota]]\n" + more).error().message;
  };
  EXPECT_TRUE(names(problem("user = \"ada\"\npeer = \"beta\"\nrate = \"1G\"\n"), "names a peer as well"));
  EXPECT_TRUE(names(problem("user = \"a b\"\nrate = \"1G\"\n"), "name of a user"));
  EXPECT_TRUE(names(problem("user = \"*\"\nrate = \"1G\"\n[[export.quota]]\nuser = \"*\"\nrate = \"1G\"\n"),
                    "two for every user"));
}

}  // namespace
}  // namespace sluice::config
