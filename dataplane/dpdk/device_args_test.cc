// What device strings turn into; the figures are those that the DPDK 22.11 drivers work with.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dpdk/device_args.h"

#include <gtest/gtest.h>

namespace sluice::dpdk {
namespace {

config::Node node_with(const std::string& device, uint32_t mtu = 9000) {
  config::Node node;
  node.device = device;
  node.mtu = mtu;
  return node;
}

TEST(DeviceArgs, MemifWithoutSizesGetsBuffersForTheMtuAndSmallRings) {
  const auto device = parse_device(node_with("net_memif0,role=server,socket=/n/a.sock,socket-abstract=no"));
  ASSERT_TRUE(device);
  EXPECT_EQ(device->argument,
            "net_memif0,role=server,socket=/n/a.sock,socket-abstract=no,bsize=9216,rsize=8");
  EXPECT_EQ(device->name, "net_memif0");
  EXPECT_TRUE(device->memif.server);
  EXPECT_FALSE(device->memif.is_abstract);
  EXPECT_EQ(device->frame_bytes_carried, 9216U);
}

TEST(DeviceArgs, MemifCarriesNoMoreThanTheBufferSizeGiven) {
  const auto device = parse_device(node_with("net_memif0,bsize=2048,rsize=10"));
  ASSERT_TRUE(device);
  EXPECT_EQ(device->argument, "net_memif0,bsize=2048,rsize=10");
  EXPECT_FALSE(device->memif.server);
  EXPECT_TRUE(device->memif.is_abstract);
  EXPECT_EQ(device->frame_bytes_carried, 2048U);
}

TEST(DeviceArgs, APcapDeviceHasTheLinkAddressOfItsInterface) {
  EXPECT_EQ(parse_device(node_with("net_pcap0,iface=va"))->argument, "net_pcap0,iface=va,phy_mac=1");
  for (const char* as_it_is : {"net_pcap0,iface=va,phy_mac=0", "net_pcap0,rx_iface=va,tx_iface=va"})
    EXPECT_EQ(parse_device(node_with(as_it_is))->argument, as_it_is);
}

TEST(DeviceArgs, KnowsWhichEndOfAVhostMakesItsSocket) {
  const auto served = [](const char* device) { return parse_device(node_with(device))->served_socket; };
  EXPECT_EQ(served("net_vhost0,iface=/n/v,queues=1"), "/n/v");
  EXPECT_EQ(served("net_vhost0,iface=/n/v,client=1"), "");
  EXPECT_EQ(served("net_virtio_user0,path=/n/v,server=1"), "/n/v");
  EXPECT_EQ(served("net_virtio_user0,path=/n/v"), "");
}

TEST(DeviceArgs, RefusesControlCharacters) {
  config::Node node;
  node.device = "net_memif0\n,role=server";
  const auto device = parse_device(node);
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().message.find('\n'), std::string::npos);
}

TEST(DeviceArgs, MemifRefusesWrongRoleSizeAndSocket) {
  EXPECT_FALSE(parse_device(node_with("net_memif0,role=boss")));
  EXPECT_FALSE(parse_device(node_with("net_memif0,bsize=70000")));
  EXPECT_FALSE(parse_device(node_with("net_memif0,bsize=0")));
  EXPECT_FALSE(parse_device(node_with("net_memif0,bsize=9k")));
  EXPECT_FALSE(parse_device(node_with("net_memif0,socket=/" + std::string(120, 'x'))));
}

TEST(DeviceArgs, AfPacketSlotsHoldTheFrameAndTheKernelsHeader) {
  const auto jumbo = parse_device(node_with("net_af_packet0,iface=veth0"));
  ASSERT_TRUE(jumbo);
  EXPECT_EQ(jumbo->argument,
            "net_af_packet0,iface=veth0,blocksz=36864,framesz=9216,framecnt=2048,qdisc_bypass=1,qpairs=1");
  EXPECT_EQ(jumbo->frame_bytes_carried, 9216U - 66);
  EXPECT_EQ(jumbo->data_room_bytes_min, 9216U - 32);
  const auto small = parse_device(node_with("net_af_packet0,iface=veth0", 1500));
  ASSERT_TRUE(small);
  EXPECT_EQ(small->frame_bytes_carried, 2048U - 66);
}

TEST(DeviceArgs, AReceiveBufferHasRoomForWhatADriverAddsAndRoundsDown) {
  for (const uint32_t frame : {1514U, 2014U, 4110U, 9014U, 9614U}) {
    const uint32_t room = room_for_driver(frame);
    EXPECT_GE(room, frame + 4 + 8 + 12) << "FCS, two VLAN tags, the header of virtio";
    EXPECT_EQ(room % 1024, 0U) << "nothing is lost to a driver that rounds down";
    EXPECT_LT(room, frame + 28 + 1024);
  }
}

TEST(DeviceArgs, AfPacketKeepsTheOperatorsRing) {
  const auto device = parse_device(node_with("net_af_packet0,iface=veth0,framesz=2048,qdisc_bypass=0"));
  ASSERT_TRUE(device);
  EXPECT_EQ(device->argument, "net_af_packet0,iface=veth0,framesz=2048,qdisc_bypass=0,qpairs=1");
  EXPECT_EQ(device->frame_bytes_carried, 1982U);
}

TEST(DeviceArgs, AfPacketNeedsAnInterfaceAndAQueuePairPerWorker) {
  EXPECT_FALSE(parse_device(node_with("net_af_packet0")));
  auto node = node_with("net_af_packet0,iface=veth0,qpairs=1");
  node.workers = 2;
  const auto device = parse_device(node);
  ASSERT_FALSE(device);
  EXPECT_EQ(device.error().code, ErrorCode::kConfiguration);
}

TEST(DeviceArgs, PciAddressesAreToldFromVirtualDevices) {
  const auto pci = parse_device(node_with("0000:c1:00.1"));
  ASSERT_TRUE(pci);
  EXPECT_EQ(pci->kind, DeviceKind::kPci);
  EXPECT_FALSE(pci->is_virtual());
  const auto shorter = parse_device(node_with("01:00.0,key=value"));
  ASSERT_TRUE(shorter);
  EXPECT_EQ(shorter->name, "01:00.0");
  EXPECT_FALSE(parse_device(node_with("eth0")));
  EXPECT_FALSE(parse_device(node_with("")));
  const auto tap = parse_device(node_with("net_tap0,iface=tap7"));
  ASSERT_TRUE(tap);
  EXPECT_EQ(tap->kind, DeviceKind::kOtherVirtual);
}

}  // namespace
}  // namespace sluice::dpdk
