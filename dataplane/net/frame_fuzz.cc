// Any bytes as an Ethernet frame: the spans lie in it, and a frame built from what was read reads the same.
// The first byte says whether an IPv4 header's checksum is put right first.
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "dataplane/base/input_for_fuzz.h"
#include "dataplane/core/wire.h"
#include "dataplane/net/frame.h"

namespace {

using namespace sluice;

void round_trip(const net::UdpFrame& udp) {
  net::FrameTemplate front(udp.source, udp.source_port, udp.destination, udp.destination_port);
  std::vector<uint8_t> frame(front.bytes());
  front.write(frame.data(), static_cast<uint32_t>(udp.payload.size()));
  const auto even = udp.payload.first(udp.payload.size() / 4 * 2);
  const uint16_t checksum = front.udp_checksum(even, udp.payload.subspan(even.size()));
  wire::store_be16(frame.data() + front.udp_checksum_at(), checksum);
  frame.insert(frame.end(), udp.payload.begin(), udp.payload.end());
  net::UdpFrame again;
  fuzz::require(net::parse_udp(frame, &again) == net::Parse::kUdp, "a frame of ours parses");
  fuzz::require(again.source == udp.source && again.destination == udp.destination &&
                    again.source_port == udp.source_port && again.destination_port == udp.destination_port &&
                    again.payload.size() == udp.payload.size(),
                "and reads the same");
  fuzz::require(checksum != 0 && net::udp_sum(again.source, again.destination, again.udp) == 0xFFFF,
                "and its checksum is good");
}

void mend_checksum(std::vector<uint8_t>& frame) {
  if (frame.size() < net::kEthernetBytes + net::kIp4Bytes || wire::load_be16(&frame[12]) != 0x0800) return;
  uint8_t* const ip = frame.data() + net::kEthernetBytes;
  wire::store_be16(ip + 10, 0);
  uint32_t sum = 0;
  for (size_t at = 0; at < net::kIp4Bytes; at += 2) sum += wire::load_be16(ip + at);
  sum = (sum & 0xFFFF) + (sum >> 16);
  wire::store_be16(ip + 10, static_cast<uint16_t>(~(sum + (sum >> 16))));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  std::vector<uint8_t> frame(data + 1, data + size);
  if ((data[0] & 1) != 0) mend_checksum(frame);
  net::UdpFrame udp;
  if (net::parse_udp(frame, &udp) != net::Parse::kUdp) return 0;
  const uint8_t* const end = frame.data() + frame.size();
  fuzz::require(udp.udp.data() >= frame.data() && udp.udp.data() + udp.udp.size() <= end,
                "UDP lies in the frame");
  fuzz::require(udp.payload.data() == udp.udp.data() + net::kUdpBytes &&
                    udp.payload.size() + net::kUdpBytes == udp.udp.size(),
                "the payload follows the UDP header");
  (void)net::udp_sum(udp.source, udp.destination, udp.udp);
  // An IPv6 frame may carry mapped addresses; Sluice builds none such.
  if (udp.source.is_ip4() == udp.destination.is_ip4()) round_trip(udp);
  return 0;
}
