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

enum class DeviceKind : uint8_t { kPci, kMemif, kAfPacket, kOtherVirtual };

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
  // af_packet only.
  std::string interface_name;

  bool is_virtual() const { return kind != DeviceKind::kPci; }
};

Result<Device> parse_device(const config::Node& node);

}  // namespace sluice::dpdk
