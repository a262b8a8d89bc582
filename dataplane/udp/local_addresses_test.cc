// SPDX-License-Identifier: Apache-2.0
#include "dataplane/udp/local_addresses.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

namespace sluice::udp {
namespace {

net::Address address(const char* text) {
  net::Address made;
  inet_pton(AF_INET6, text, made.bytes);
  return made;
}

InterfaceAddress interface(const char* name, const char* text, uint32_t mtu, bool loopback = false) {
  return {.interface = name, .address = address(text), .mtu = mtu, .loopback = loopback};
}

const InterfaceAddress kLo4 = interface("lo", "::ffff:127.0.0.1", 65536, true);
const InterfaceAddress kLo6 = interface("lo", "::1", 65536, true);
const InterfaceAddress kEth4 = interface("eth0", "::ffff:10.1.0.5", 1500);
const InterfaceAddress kEth6 = interface("eth0", "2001:db8:1::5", 1500);
const InterfaceAddress kData4 = interface("data0", "::ffff:10.77.0.1", 9000);

config::Node node(const std::string& address4 = "", const std::string& address6 = "") {
  config::Node made;
  made.address4 = address4;
  made.address6 = address6;
  return made;
}

TEST(LocalAddresses, WithoutAnyNamedThoseOfTheDefaultRoute) {
  const HostInterfaces host{
      .addresses = {kLo4, kLo6, kData4, kEth4, kEth6}, .default4 = kEth4.address, .default6 = kEth6.address};
  const auto local = choose_addresses(node(), host);
  ASSERT_TRUE(local) << local.error().message;
  EXPECT_EQ(local->ip4, kEth4.address);
  EXPECT_EQ(local->ip6, kEth6.address);
  EXPECT_EQ(local->mtu, 1500U);
}

TEST(LocalAddresses, WithoutADefaultRouteTheFirstThatIsNoLoopback) {
  const auto local =
      choose_addresses(node(), {.addresses = {kLo4, kLo6, kData4}, .default4 = {}, .default6 = {}});
  ASSERT_TRUE(local);
  EXPECT_EQ(local->ip4, kData4.address);
  EXPECT_TRUE(local->ip6.is_zero());
  EXPECT_EQ(local->mtu, 9000U);
}

TEST(LocalAddresses, AHostOnItsOwnHasItsLoopback) {
  const auto local = choose_addresses(node(), {.addresses = {kLo4, kLo6}, .default4 = {}, .default6 = {}});
  ASSERT_TRUE(local);
  EXPECT_EQ(local->ip4, kLo4.address);
  EXPECT_TRUE(local->ip6.is_zero());
  EXPECT_EQ(local->mtu, config::Node{}.mtu) << "an interface's MTU never raises that of node.toml";
}

TEST(LocalAddresses, AHostWithIp6AloneHasNoLoopbackOfTheOtherFamily) {
  const auto local =
      choose_addresses(node(), {.addresses = {kLo4, kLo6, kEth6}, .default4 = {}, .default6 = kEth6.address});
  ASSERT_TRUE(local);
  EXPECT_TRUE(local->ip4.is_zero());
  EXPECT_EQ(local->ip6, kEth6.address);
}

TEST(LocalAddresses, WhatIsNamedIsTaken) {
  const HostInterfaces host{
      .addresses = {kLo4, kData4, kEth4, kEth6}, .default4 = kEth4.address, .default6 = {}};
  const auto local = choose_addresses(node("10.77.0.1/24"), host);
  ASSERT_TRUE(local);
  EXPECT_EQ(local->ip4, kData4.address);
  EXPECT_TRUE(local->ip6.is_zero()) << "nobody asked for IPv6";
  EXPECT_EQ(local->mtu, 9000U);
}

TEST(LocalAddresses, AnAddressOfAnotherHostIsRefusedWithTheOwnOnes) {
  const HostInterfaces host{.addresses = {kLo4, kEth4, kEth6}, .default4 = {}, .default6 = {}};
  const auto four = choose_addresses(node("10.77.0.1/24"), host);
  ASSERT_FALSE(four);
  EXPECT_EQ(four.error().code, ErrorCode::kConfiguration);
  EXPECT_NE(four.error().message.find("10.1.0.5 (eth0)"), std::string::npos) << four.error().message;
  const auto six = choose_addresses(node("", "fd77::1/64"), host);
  ASSERT_FALSE(six);
  EXPECT_NE(six.error().message.find("2001:db8:1::5 (eth0)"), std::string::npos) << six.error().message;
}

TEST(LocalAddresses, AHostWithoutAnyIsRefused) { EXPECT_FALSE(choose_addresses(node(), {})); }

TEST(LocalAddresses, ThisHostHasOneAtLeast) { EXPECT_TRUE(choose_addresses(node(), host_interfaces())); }

}  // namespace
}  // namespace sluice::udp
