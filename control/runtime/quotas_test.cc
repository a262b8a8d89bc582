// Quotas: who counts where, and what is refused in which words.
// SPDX-License-Identifier: Apache-2.0
#include "control/runtime/quotas.h"

#include <gtest/gtest.h>

namespace sluice::runtime {
namespace {

using exports::QuotaOf;
using Of = std::vector<QuotaOf>;

Of drop(config::Quota quota) { return {{.export_name = "drop", .quota = std::move(quota)}}; }

TEST(Quotas, WhatASessionHasMayReachTheLimitAndNotPassIt) {
  Quotas quotas("b");
  const Of of = drop({.session_bytes = 10ULL << 20, .session_files = 3});
  EXPECT_TRUE(quotas.admit("1", "peer a", of, {.bytes = 10ULL << 20, .files = 3}));
  const Status bytes = quotas.admit("1", "peer a", of, {.bytes = (10ULL << 20) + 1, .files = 1});
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code, ErrorCode::kQuota);
  EXPECT_EQ(bytes.error().message,
            "export drop: quota of peer a: session_bytes = 10MiB, and the list of this session has come to "
            "10485761 bytes: take less at a time, or have [[export.quota]] raised in node.toml of node b");
  const Status files = quotas.admit("1", "peer a", of, {.bytes = 1, .files = 4});
  ASSERT_FALSE(files);
  EXPECT_NE(files.error().message.find("session_files = 3, and the list of this session has come to 4 names"),
            std::string::npos);
}

TEST(Quotas, SessionsCountByPeerAndExportUntilTheyLeave) {
  Quotas quotas("b");
  const Of of = drop({.sessions_max = 2});
  EXPECT_TRUE(quotas.admit("1", "peer a", of, {}));
  EXPECT_TRUE(quotas.admit("2", "peer a", of, {}));
  EXPECT_TRUE(quotas.admit("2", "peer a", of, {.bytes = 5})) << "its list grows: it counts once";
  const Status third = quotas.admit("3", "peer a", of, {});
  ASSERT_FALSE(third);
  EXPECT_NE(third.error().message.find("sessions_max = 2, and 2 of its sessions have not ended there"),
            std::string::npos);
  EXPECT_TRUE(quotas.admit("4", "peer c", of, {})) << "another peer";
  EXPECT_TRUE(quotas.admit("5", "peer a", {{.export_name = "data", .quota = {.sessions_max = 2}}}, {}));
  EXPECT_TRUE(quotas.admit("5", "user ada", of, {})) << "a session of a peer's is also its user's";
  EXPECT_TRUE(quotas.admit("6", "user ada", of, {}));
  EXPECT_NE(quotas.admit("7", "user ada", of, {}).error().message.find("export drop: quota of user ada: "),
            std::string::npos);
  quotas.leave("1");
  EXPECT_TRUE(quotas.admit("3", "peer a", of, {})) << "what was refused holds no place, and what left none";
}

TEST(Quotas, WhatAFormerControlLeftCountsWhateverTheQuotaIsNow) {
  Quotas quotas("b");
  const Of of = drop({.sessions_max = 1});
  quotas.enter("1", "peer a", of);
  quotas.enter("2", "peer a", of);
  quotas.leave("1");
  EXPECT_FALSE(quotas.admit("3", "peer a", of, {}));
  EXPECT_TRUE(quotas.admit("2", "peer a", of, {})) << "itself does not count";
}

TEST(Quotas, OfSeveralExportsEachLimits) {
  Quotas quotas("b");
  const Of of = {{.export_name = "outer", .quota = {.rate_bps = 5}},
                 {.export_name = "inner", .quota = {.session_bytes = 9, .rate_bps = 3}},
                 {.export_name = "free", .quota = {}}};
  EXPECT_TRUE(quotas.admit("1", "peer a", of, {.bytes = 9}));
  const Status over = quotas.admit("1", "peer a", of, {.bytes = 10});
  ASSERT_FALSE(over);
  EXPECT_EQ(over.error().message.find("export inner"), 0U);
  EXPECT_EQ(ceiling_bps(of), 3U);
  EXPECT_EQ(ceiling_bps(drop({})), 0U);
}

}  // namespace
}  // namespace sluice::runtime
