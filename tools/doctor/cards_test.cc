// Cards of a host that is made up in a folder.
// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/cards.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace sluice::doctor {
namespace {

namespace fs = std::filesystem;

class Cards : public ::testing::Test {
 protected:
  void TearDown() override { fs::remove_all(root_); }
  void put(const std::string& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text << "\n";
  }
  void add(const std::string& pci, const std::string& driver, const std::string& net_folder) {
    const std::string device = "sys/bus/pci/devices/" + pci;
    put(device + "/class", "0x020000");
    fs::create_directories(root_ / "drivers" / driver);
    fs::create_directory_symlink(root_ / "drivers" / driver, root_ / device / "driver");
    if (!net_folder.empty()) fs::create_directories(root_ / device / net_folder);
  }

  const fs::path root_ = fs::temp_directory_path() / ("cards-test-" + std::to_string(::getpid()));
};

TEST_F(Cards, AreFoundByTheirClassWithAllThatAChoiceNeeds) {
  add("0000:01:00.0", "ixgbe", "net/eth2");
  put("sys/bus/pci/devices/0000:01:00.0/numa_node", "1");
  put("sys/bus/pci/devices/0000:01:00.0/iommu_group/name", "");
  put("sys/class/net/eth2/speed", "100000");
  put("sys/class/net/eth2/operstate", "up");
  add("0000:00:03.0", "virtio-pci", "virtio0/net/eth0");
  add("0000:02:00.0", "vfio-pci", "");
  put("sys/bus/pci/devices/0000:03:00.0/class", "0x010802");  // a disk
  const auto cards = gather_cards(root_, {});
  ASSERT_EQ(cards.size(), 3U);
  EXPECT_EQ(cards[0].interface, "eth0");
  EXPECT_FALSE(cards[0].iommu_group);
  EXPECT_EQ(cards[1].pci, "0000:01:00.0");
  EXPECT_EQ(cards[1].interface, "eth2");
  EXPECT_EQ(cards[1].driver, "ixgbe");
  EXPECT_EQ(cards[1].speed_mbps, 100000);
  EXPECT_EQ(cards[1].numa_node, 1);
  EXPECT_TRUE(cards[1].up);
  EXPECT_TRUE(cards[1].iommu_group);
  EXPECT_EQ(cards[2].driver, "vfio-pci");
  EXPECT_EQ(cards[2].interface, "");
  for (const Card& card : cards) EXPECT_FALSE(card.in_use()) << card.pci;
}

TEST_F(Cards, WhatTheHostItselfNeedsIsInUse) {
  add("0000:01:00.0", "ixgbe", "net/eth0");
  add("0000:02:00.0", "ixgbe", "net/eth1");
  add("0000:03:00.0", "ixgbe", "net/eth2");
  add("0000:04:00.0", "mlx5_core", "net/eth3");
  put("proc/net/route",
      "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\n"
      "eth0\t00000000\t0100A8C0\t0003\t0\t0\t0\t00000000\n"
      "eth3\t00000A0A\t00000000\t0001\t0\t0\t0\t00FFFFFF");
  put("proc/net/ipv6_route",
      "00000000000000000000000000000000 00 00000000000000000000000000000000 00 "
      "fe800000000000000000000000000001 00000400 00000001 00000000 00000003 eth1\n"
      "00000000000000000000000000000000 00 00000000000000000000000000000000 00 "
      "00000000000000000000000000000000 ffffffff 00000001 00000000 00200200 lo");
  const auto cards = gather_cards(root_, {{"eth2", {"10.0.0.1/24"}}});
  ASSERT_EQ(cards.size(), 4U);
  EXPECT_TRUE(cards[0].default_route);
  EXPECT_TRUE(cards[1].default_route) << "IPv6 alone";
  EXPECT_TRUE(cards[2].in_use());
  EXPECT_FALSE(cards[2].default_route);
  EXPECT_FALSE(cards[3].in_use());
  EXPECT_TRUE(cards[3].shared_with_kernel());
}

TEST_F(Cards, AHostWithoutThemHasNone) { EXPECT_TRUE(gather_cards(root_, {}).empty()); }

TEST(CardsHere, LoopbackHasItsAddress) {
  const auto all = gather_addresses();
  if (!all.contains("lo")) GTEST_SKIP() << "no loopback here";
  const auto& lo = all.at("lo");
  EXPECT_NE(std::find(lo.begin(), lo.end(), "127.0.0.1/8"), lo.end());
}

}  // namespace
}  // namespace sluice::doctor
