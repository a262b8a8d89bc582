// SPDX-License-Identifier: Apache-2.0
#include "control/peer/framing.h"

#include "dataplane/core/wire.h"

namespace sluice::peer {

std::string encode_frame(std::string_view payload) {
  uint8_t header[kFrameHeaderBytes];
  wire::store_be32(header, static_cast<uint32_t>(payload.size()));
  std::string frame;
  frame.reserve(sizeof header + payload.size());
  frame.append(reinterpret_cast<const char*>(header), sizeof header);
  return frame.append(payload);
}

void FrameDecoder::feed(std::span<const uint8_t> bytes) {
  if (too_long_) return;
  // Moving the rest to the front only once half of the buffer is used up keeps the cost linear.
  if (taken_ > buffer_.size() / 2) {
    buffer_.erase(0, taken_);
    taken_ = 0;
    constexpr size_t kKeptBytes = 256U << 10;  // a big message must not hold its memory for ever
    if (buffer_.capacity() > kKeptBytes && buffer_.size() < kKeptBytes / 2) buffer_.shrink_to_fit();
  }
  buffer_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

uint32_t FrameDecoder::next_bytes() const {
  if (buffered_bytes() < kFrameHeaderBytes) return 0;
  return wire::load_be32(reinterpret_cast<const uint8_t*>(buffer_.data() + taken_));
}

FrameDecoder::Next FrameDecoder::next(std::string* payload) {
  if (too_long_) return Next::kTooLong;
  if (buffered_bytes() < kFrameHeaderBytes) return Next::kNeedMore;
  const char* front = buffer_.data() + taken_;
  const uint32_t length = next_bytes();
  if (length > frame_bytes_max_) {
    too_long_ = true;
    buffer_ = {};
    taken_ = 0;
    return Next::kTooLong;
  }
  if (buffered_bytes() - kFrameHeaderBytes < length) return Next::kNeedMore;
  payload->assign(front + kFrameHeaderBytes, length);
  taken_ += kFrameHeaderBytes + length;
  return Next::kFrame;
}

}  // namespace sluice::peer
