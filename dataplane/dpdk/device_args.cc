// Cold, pure. See device_args.h.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dpdk/device_args.h"

#include <fmt/format.h>
#include <sys/un.h>

#include <bit>
#include <charconv>
#include <map>
#include <string_view>

namespace sluice::dpdk {
namespace {

constexpr uint32_t kEthernetHeaderBytes = 14;
// TPACKET_V2: the kernel puts a received Ethernet frame 66 bytes into its slot (a header of 52 bytes,
// then the link header's end aligned), while a sent one starts 32 bytes into it.
constexpr uint32_t kTpacketRxBytes = 66;
constexpr uint32_t kTpacketTxBytes = 32;
constexpr uint32_t kTpacketFrames = 2048;

using Arguments = std::map<std::string, std::string, std::less<>>;

Error wrong(const Device& device, std::string_view reason) {
  return {ErrorCode::kConfiguration, fmt::format("[port] device {}: {}", device.name, reason)};
}

Arguments split(std::string_view text) {
  Arguments arguments;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    const size_t equals = item.find('=');
    if (!item.empty()) {
      arguments[std::string(item.substr(0, equals))] =
          equals == std::string_view::npos ? std::string() : std::string(item.substr(equals + 1));
    }
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  }
  return arguments;
}

Result<uint32_t> number(const Device& device, const Arguments& arguments, std::string_view key,
                        uint32_t otherwise) {
  const auto found = arguments.find(key);
  if (found == arguments.end()) return otherwise;
  const std::string& text = found->second;
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value == 0 || value > (1U << 20)) {
    return wrong(device, fmt::format("{}={} is not a number from 1 to {}", key, text, 1U << 20));
  }
  return value;
}

uint32_t round_up(uint32_t value, uint32_t to) { return (value + to - 1) / to * to; }

// bsize: one frame per buffer, since a frame spread over several leaves stale chain flags in the ring
// (DPDK 22.11). rsize: both rings of a queue pair have it; small, so that they stay in cache.
Status complete_memif(const config::Node& node, const Arguments& arguments, Device* device) {
  const std::string role = arguments.contains("role") ? arguments.at("role") : "client";
  memif::SocketConfig& memif = device->memif;
  memif.device = device->name;
  memif.server = role == "server" || role == "master";
  if (!memif.server && role != "client" && role != "slave") {
    return wrong(*device, fmt::format("role={} is neither server nor client", role));
  }
  device->zero_copy = !memif.server && arguments.contains("zero-copy") && arguments.at("zero-copy") == "yes";
  memif.path = arguments.contains("socket") ? arguments.at("socket") : "/run/memif.sock";
  memif.is_abstract = !arguments.contains("socket-abstract") || arguments.at("socket-abstract") != "no";
  if (memif.path.size() >= sizeof(sockaddr_un::sun_path) - 1) {
    return wrong(*device, fmt::format("socket={} is longer than {} characters: use a shorter path",
                                      memif.path, sizeof(sockaddr_un::sun_path) - 2));
  }
  if (!arguments.contains("bsize")) {
    device->argument += fmt::format(",bsize={}", round_up(node.mtu + kEthernetHeaderBytes, 1024));
  }
  if (!arguments.contains("rsize")) {
    const uint32_t slots = std::max(64U, std::min(node.rx_ring, node.tx_ring));
    device->argument += fmt::format(",rsize={}", std::min(14, static_cast<int>(std::bit_width(slots)) - 1));
  }
  const auto buffer = number(*device, arguments, "bsize", round_up(node.mtu + kEthernetHeaderBytes, 1024));
  if (!buffer) return buffer.error();
  if (*buffer > 0xffff) return wrong(*device, fmt::format("bsize={} is above 65535", *buffer));
  device->frame_bytes_carried = *buffer;
  return {};
}

Status complete_af_packet(const config::Node& node, const Arguments& arguments, Device* device) {
  const auto interface_name = arguments.find("iface");
  if (interface_name == arguments.end() || interface_name->second.empty()) {
    return wrong(*device, "iface=NAME is missing: name the network interface to use");
  }
  device->interface_name = interface_name->second;
  uint32_t slot_bytes = 2048;  // the driver's default, when the operator sets part of the ring
  if (!arguments.contains("framesz") && !arguments.contains("blocksz") && !arguments.contains("framecnt")) {
    // Four slots of a multiple of 1 KiB are whole pages.
    slot_bytes = round_up(node.mtu + kEthernetHeaderBytes + kTpacketRxBytes, 1024);
    device->argument +=
        fmt::format(",blocksz={},framesz={},framecnt={}", 4 * slot_bytes, slot_bytes, kTpacketFrames);
    device->kernel_ring_frames = kTpacketFrames;
  } else {
    const auto given = number(*device, arguments, "framesz", slot_bytes);
    if (!given) return given.error();
    slot_bytes = *given;
    if (slot_bytes <= kTpacketRxBytes + kEthernetHeaderBytes || slot_bytes % 16 != 0) {
      return wrong(*device, fmt::format("framesz={} must be a multiple of 16 above 80", slot_bytes));
    }
  }
  if (!arguments.contains("qdisc_bypass")) device->argument += ",qdisc_bypass=1";
  const auto pairs = number(*device, arguments, "qpairs", 1);
  if (!pairs) return pairs.error();
  if (!arguments.contains("qpairs")) {
    device->argument += fmt::format(",qpairs={}", node.workers);
  } else if (*pairs != node.workers) {
    return wrong(*device, fmt::format("qpairs={} differs from [dataplane] workers = {}: leave qpairs out",
                                      *pairs, node.workers));
  }
  device->frame_bytes_carried = slot_bytes - kTpacketRxBytes;
  device->data_room_bytes_min = slot_bytes - kTpacketTxBytes;
  return {};
}

// Else all devices of the driver have one link address, and take each other's answers for their own.
void complete_pcap(const Arguments& arguments, Device* device) {
  if (arguments.contains("iface") && !arguments.contains("phy_mac")) device->argument += ",phy_mac=1";
}

// Which end makes the socket: a vhost unless it is a client, a virtio_user if it is told to.
void complete_vhost(const Arguments& arguments, Device* device) {
  const bool vhost = device->name.starts_with("net_vhost");
  const auto is = [&](const char* key) { return arguments.contains(key) && arguments.at(key) == "1"; };
  const auto path = arguments.find(vhost ? "iface" : "path");
  if (path != arguments.end() && (vhost ? !is("client") : is("server"))) device->served_socket = path->second;
}

bool is_pci_address(std::string_view text) {
  // [DDDD:]BB:DD.F
  size_t colons = 0;
  for (const char c : text) {
    if (c == ':') {
      ++colons;
    } else if (c != '.' && std::string_view("0123456789abcdefABCDEF").find(c) == std::string_view::npos) {
      return false;
    }
  }
  return (colons == 1 || colons == 2) && text.size() >= 7 && text[text.size() - 2] == '.';
}

}  // namespace

Result<Device> parse_device(const config::Node& node) {
  Device device;
  for (const char c : node.device) {
    if (static_cast<unsigned char>(c) < ' ' || c == 0x7F) {
      return Error{ErrorCode::kConfiguration,
                   "[port] device holds a control character: write it in one line"};
    }
  }
  const size_t comma = node.device.find(',');
  device.name = node.device.substr(0, comma);
  device.argument = node.device;
  const Arguments arguments = split(
      comma == std::string::npos ? std::string_view() : std::string_view(node.device).substr(comma + 1));
  Status status;
  if (is_pci_address(device.name)) {
    device.kind = DeviceKind::kPci;
  } else if (device.name.starts_with("net_memif")) {
    device.kind = DeviceKind::kMemif;
    status = complete_memif(node, arguments, &device);
  } else if (device.name.starts_with("net_af_packet") || device.name.starts_with("eth_af_packet")) {
    device.kind = DeviceKind::kAfPacket;
    status = complete_af_packet(node, arguments, &device);
  } else if (device.name.starts_with("net_af_xdp")) {
    device.kind = DeviceKind::kAfXdp;
    if (const auto named = arguments.find("iface"); named != arguments.end())
      device.interface_name = named->second;
  } else if (device.name.starts_with("net_pcap")) {
    complete_pcap(arguments, &device);
  } else if (device.name.starts_with("net_vhost") || device.name.starts_with("net_virtio_user")) {
    complete_vhost(arguments, &device);
  } else if (!device.name.starts_with("net_")) {
    return Error{ErrorCode::kConfiguration,
                 fmt::format("[port] device \"{}\" is neither a PCI address like 0000:01:00.0 nor a DPDK "
                             "device like net_memif0,role=server,...",
                             node.device)};
  }
  if (!status) return status.error();
  return device;
}

}  // namespace sluice::dpdk
