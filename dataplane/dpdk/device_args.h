// What the configuration's `device` string means: which driver, which EAL argument, and how large a
// frame it carries. Pure: parses text, touches nothing.
//
// DPDK's virtual drivers report a maximum of 1518 bytes whatever their buffers hold, so the sizes are
// taken from their arguments; those that the operator left out are added to fit the configured MTU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "dataplane/base/config/config.h"
#include "dataplane/base/error.h"
#include "dataplane/memif/socket.h"

namespace sluice::dpdk {

enum class DeviceKind : uint8_t { kPci, kMemif, kAfPacket, kAfXdp, kOtherVirtual };

struct Device {
  DeviceKind kind = DeviceKind::kOtherVirtual;
  std::string name;      // "net_memif0", "0000:01:00.0"
  std::string argument;  // for --vdev or -a: the device string, completed
  // Largest frame without FCS that the driver's buffers carry; 0: the ethdev knows.
  uint32_t frame_bytes_carried = 0;
  // The driver refuses receive buffers with less room than this.
  uint32_t data_room_bytes_min = 0;

  // memif only.
  memif::SocketConfig memif;
  bool zero_copy = false;
  // af_packet and af_xdp only.
  std::string interface_name;
  uint32_t kernel_ring_frames =
      0;  // received frames that wait for the driver, which has a small ring besides
  // vhost and virtio_user only: the socket that this end makes; empty: it calls the other's.
  std::string served_socket;

  bool is_virtual() const { return kind != DeviceKind::kPci; }
};

Result<Device> parse_device(const config::Node& node);

// Of a receive buffer into which a driver takes whole frames of this length (without FCS). Besides the frame
// it may want room for the FCS, two VLAN tags and a header of its own (virtio: 12 bytes); and drivers round
// the room down, those of Intel's cards to 1 KiB (SRRCTL.BSIZEPKT of their datasheets).
constexpr uint32_t room_for_driver(uint32_t frame_bytes) {
  constexpr uint32_t kFcs = 4;
  constexpr uint32_t kVlanTags = 8;
  constexpr uint32_t kDriverHeader = 16;
  constexpr uint32_t kStep = 1024;
  return (frame_bytes + kFcs + kVlanTags + kDriverHeader + kStep - 1) / kStep * kStep;
}

}  // namespace sluice::dpdk
