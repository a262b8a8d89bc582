// The protocol HIPSTER (docs/SOURCES.md, section 2), ported for a baseline: not a part of the product.
//
// What the paper leaves open and was chosen: the split of the header's 12 bytes, the window, and the time
// after which a packet goes although no acknowledgement came.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sluice::hipster {

constexpr size_t kHeaderBytes = 12;
constexpr size_t kPayloadBytes = 1000;
constexpr size_t kPacketBytes = kHeaderBytes + kPayloadBytes;
constexpr int kSocketBufferBytes = 64 << 20;

enum class Code : uint8_t { kData = 0, kAck = 1, kEnd = 2 };

// Destination 4, port 2, code 1, spare 1, sequence number 4; the payload's size is the datagram's.
struct Header {
  Code code = Code::kData;
  uint32_t sequence = 0;

  void write(uint8_t* out) const {
    for (size_t i = 0; i < 8; ++i) out[i] = 0;
    out[6] = static_cast<uint8_t>(code);
    for (size_t i = 0; i < 4; ++i) out[8 + i] = static_cast<uint8_t>(sequence >> (24 - 8 * i));
  }
  static Header read(const uint8_t* in) {
    Header header{.code = static_cast<Code>(in[6])};
    for (size_t i = 0; i < 4; ++i) header.sequence = (header.sequence << 8U) | in[8 + i];
    return header;
  }
};

struct Options {
  std::string file;
  std::string address;  // to send to; to receive at
  uint16_t port = 4444;
  uint64_t size_bytes = 0;  // to receive
  uint32_t window = 4096;
  double block_us = 40;  // at most so long between two packets, acknowledged or not
};

int make_socket();
[[noreturn]] void fail(const std::string& what);
int send_file(const Options& options);
int receive_file(const Options& options);

}  // namespace sluice::hipster
