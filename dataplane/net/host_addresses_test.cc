// What node.toml says of addresses, as the packet code gets it.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/net/host_addresses.h"

#include <gtest/gtest.h>

namespace sluice::net {
namespace {

constexpr uint8_t kMac[6] = {2, 0, 0, 0, 0, 1};

config::Node node_with(const std::string& neighbours) {
  config::Node node;
  node.address4 = "10.77.0.1/24";
  node.gateway4 = "10.77.0.254";
  node.address6 = "fd77::1/64";
  node.neighbours = neighbours;
  return node;
}

TEST(HostAddresses, FixedNeighboursAreThoseOfTheLink) {
  const auto host = host_addresses(
      node_with("10.77.0.2=02:00:00:00:00:02 fd77::2=02:00:00:00:00:03 10.77.0.254=02:00:00:00:00:fe"), kMac);
  ASSERT_TRUE(host);
  ASSERT_EQ(host->fixed.size(), 3U);
  EXPECT_EQ(host->fixed[0].ip.bytes[15], 2);
  EXPECT_TRUE(host->fixed[0].ip.is_ip4());
  EXPECT_EQ(host->fixed[1].link.bytes[5], 3);
  for (const char* far : {"10.78.0.2", "fd88::2"}) {
    const auto refused = host_addresses(node_with(std::string(far) + "=02:00:00:00:00:02"), kMac);
    ASSERT_FALSE(refused) << far;
    EXPECT_NE(refused.error().message.find(far), std::string::npos) << refused.error().message;
  }
}

}  // namespace
}  // namespace sluice::net
