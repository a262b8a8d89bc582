// Frames of the control stream: four bytes of length in network order, then that many bytes.
//
// Pure: no sockets, no protobuf. Memory grows with what arrived, never with what a length promises.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace sluice::peer {

inline constexpr size_t kFrameHeaderBytes = 4;

// Header and payload as one string.
std::string encode_frame(std::string_view payload);

class FrameDecoder {
 public:
  enum class Next : uint8_t { kNeedMore, kFrame, kTooLong };

  explicit FrameDecoder(uint32_t frame_bytes_max) : frame_bytes_max_(frame_bytes_max) {}

  void set_frame_bytes_max(uint32_t frame_bytes_max) { frame_bytes_max_ = frame_bytes_max; }
  void feed(std::span<const uint8_t> bytes);
  // Takes the next complete frame. kTooLong is final: the stream has no further frames.
  Next next(std::string* payload);
  // Of the payload of the frame that comes next, as far as its length has arrived; 0 before that.
  uint32_t next_bytes() const;
  size_t buffered_bytes() const { return buffer_.size() - taken_; }

 private:
  uint32_t frame_bytes_max_;
  bool too_long_ = false;
  std::string buffer_;
  size_t taken_ = 0;  // bytes at the front of buffer_ that belong to frames already taken
};

}  // namespace sluice::peer
