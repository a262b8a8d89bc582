// Any bytes as a frame: nothing may be read or written out of bounds, and no reply is larger than asked.
// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "dataplane/net/neighbours.h"

namespace {

sluice::net::HostAddresses host() {
  sluice::net::HostAddresses host;
  const uint8_t mac[6] = {2, 0, 0, 0, 0, 1};
  memcpy(host.mac, mac, sizeof mac);
  host.ip4[10] = host.ip4[11] = 0xff;
  const uint8_t ip4[4] = {10, 77, 0, 1};
  memcpy(host.ip4 + 12, ip4, sizeof ip4);
  host.prefix4 = 24;
  host.ip6[0] = 0xfd;
  host.ip6[1] = 0x77;
  host.ip6[15] = 1;
  host.prefix6 = 64;
  return host;
}

}  // namespace

// The first byte chooses the room for the reply; the rest is the frame.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  sluice::net::Neighbours neighbours(host());
  const std::vector<uint8_t> frame(data + 1,
                                   data + size);  // exact allocations: the sanitizer sees one byte more
  std::vector<uint8_t> reply(size_t{data[0]} * 8);
  const auto handled = neighbours.handle(frame, 1, reply);
  if (handled.reply_bytes > reply.size() || (!handled.ours && handled.reply_bytes != 0)) abort();
  if (frame.size() >= 16) {
    const uint8_t* const hop = neighbours.next_hop(frame.data());
    if (hop != nullptr && neighbours.resolve(hop, 0, 1, reply).frame_bytes > reply.size()) abort();
  }
  return 0;
}
