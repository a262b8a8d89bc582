// Rates, sizes and addresses as people write them.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "dataplane/base/config/config.h"

namespace sluice::config {
namespace {

TEST(Units, RatesAreDecimalAndExact) {
  EXPECT_EQ(*parse_rate("10G"), 10'000'000'000U);
  EXPECT_EQ(*parse_rate("2.5G"), 2'500'000'000U);
  EXPECT_EQ(*parse_rate("800M"), 800'000'000U);
  EXPECT_EQ(*parse_rate("1000"), 1000U);
  EXPECT_EQ(*parse_rate("1.000000001Gbit/s"), 1'000'000'001U);
  EXPECT_EQ(*parse_rate("10g"), 10'000'000'000U);
  EXPECT_EQ(*parse_rate("10Gbps"), 10'000'000'000U);
  EXPECT_EQ(*parse_rate("5m"), 5'000'000U);
  for (const char* bad : {"", "G", "1.5", "1.", ".5G", "10X", "10 G", "-1", "1e9", "10GiB", "10GB/s",
                          "10GBps", "18446744073709551616", "20000000T", "1.0000000001G", "1.5.5G"}) {
    EXPECT_FALSE(parse_rate(bad)) << bad;
  }
}

TEST(Units, SizesAreBinaryAndExact) {
  EXPECT_EQ(*parse_size("1GiB"), 1ULL << 30);
  EXPECT_EQ(*parse_size("64M"), 64ULL << 20);
  EXPECT_EQ(*parse_size("1.5K"), 1536U);
  EXPECT_EQ(*parse_size("100"), 100U);
  EXPECT_EQ(*parse_size("100B"), 100U);
  EXPECT_EQ(*parse_size("10g"), 10ULL << 30);
  for (const char* bad : {"", "MiB", "64MB", "64mib", "0.3K", "16777216T", "1iB", "1 M"}) {
    EXPECT_FALSE(parse_size(bad)) << bad;
  }
}

TEST(Units, HostAndPortAreSplit) {
  EXPECT_EQ(parse_host_port("dtn1.example.org:7400")->host, "dtn1.example.org");
  EXPECT_EQ(parse_host_port("[fd77::1]:7400")->host, "fd77::1");
  EXPECT_EQ(parse_host_port("[fe80::1%eth0]:7400")->host, "fe80::1%eth0");
  EXPECT_EQ(parse_host_port("127.0.0.1:0")->port, 0);
  for (const char* bad : {"", "host", ":7400", "host:", "host:65536", "host:7400x", "fd77::1:7400",
                          "[fd77::1]7400", "[host]:7400", "a b:1", "host:+1"}) {
    EXPECT_FALSE(parse_host_port(bad)) << bad;
  }
}

}  // namespace
}  // namespace sluice::config
