// The frames that probes send: constant headers as of one UDP flow, and a mark; the rest is whatever the
// buffer holds. Nobody reads or writes a payload.
//
// Hot but for the constructor; one owner.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "dataplane/net/frame.h"
#include "dataplane/net/frame_queue.h"

namespace sluice::probe {

class FrameWriter {
 public:
  static constexpr size_t kMarkAt = net::kEthernetBytes + net::kIp4Bytes + net::kUdpBytes;
  static constexpr uint64_t kMark = 0x65626F72702D6C73;

  explicit FrameWriter(uint32_t frame_bytes);

  // Appends a frame to the queue's burst; false when there is no room.
  bool append(net::FrameQueue& queue) const {
    uint8_t* const frame = queue.tx_begin(frame_bytes_, nullptr, 0, nullptr, false);
    if (frame == nullptr) return false;
    std::memcpy(frame, front_.data(), front_.size());
    return true;
  }

 private:
  const uint32_t frame_bytes_;
  std::array<uint8_t, kMarkAt + sizeof kMark> front_{};
};

// A frame that a FrameWriter wrote, and no stray one of a shared network.
inline bool is_ours(const net::RxFrame& frame) {
  uint64_t mark = 0;
  if (frame.length < FrameWriter::kMarkAt + sizeof mark) return false;
  std::memcpy(&mark, frame.data + FrameWriter::kMarkAt, sizeof mark);
  return mark == FrameWriter::kMark;
}

}  // namespace sluice::probe
