// How the chunks of a compressed extent begin (docs/WIRE.md 1.14).
//
// Pure. A compressed extent travels as one zstd frame, cut into pieces; each chunk is a head and the next
// piece, and as long as any other chunk of the flow. The head says the same in all chunks of the extent, so
// that any of them tells how many there are, and chunks of two different compressions are never put together.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "dataplane/core/wire.h"

namespace sluice::wire {

inline constexpr uint32_t kCompressedHeadBytes = 16;
inline constexpr uint8_t kCodecZstd = 1;

struct CompressedHead {
  uint32_t wire_bytes = 0;    // of all chunks of the extent, heads included; < 2^24
  uint32_t frame_crc = 0;     // CRC-32C of the frame
  uint64_t plain_digest = 0;  // of the extent as it lies in its file, by the CRC kind that was agreed upon

  bool operator==(const CompressedHead&) const = default;
};

// The first kCompressedHeadBytes of `out`.
inline void put_head(const CompressedHead& head, uint8_t* out) {
  store_be32(out, uint32_t{kCodecZstd} << 24 | head.wire_bytes);
  store_be32(out + 4, head.frame_crc);
  store_be64(out + 8, head.plain_digest);
}

// False: the payload of a chunk does not begin so.
inline bool take_head(std::span<const uint8_t> payload, CompressedHead* out) {
  if (payload.size() <= kCompressedHeadBytes || payload[0] != kCodecZstd) return false;
  *out = {.wire_bytes = load_be32(payload.data()) & 0xFFFFFF,
          .frame_crc = load_be32(&payload[4]),
          .plain_digest = load_be64(&payload[8])};
  return true;
}

// Bytes of the chunks that carry a frame of so many bytes. chunk_bytes > kCompressedHeadBytes.
constexpr uint64_t wire_bytes_of_frame(uint64_t frame_bytes, uint32_t chunk_bytes) {
  const uint64_t piece = chunk_bytes - kCompressedHeadBytes;
  return frame_bytes + (frame_bytes + piece - 1) / piece * kCompressedHeadBytes;
}
static_assert(kChunkBytesMin > kCompressedHeadBytes);

// Whether chunks of that flow can add up to wire_bytes: each of them carries a part of the frame.
constexpr bool are_chunks(uint32_t wire_bytes, uint32_t chunk_bytes) {
  const uint32_t last = wire_bytes % chunk_bytes;
  return wire_bytes > kCompressedHeadBytes && (last == 0 || last > kCompressedHeadBytes);
}

// Writes the chunks of `frame` to `out`, one behind the other: wire_bytes_of_frame() bytes.
inline void put_chunks(const CompressedHead& head, std::span<const uint8_t> frame, uint32_t chunk_bytes,
                       uint8_t* out) {
  const size_t piece_bytes = chunk_bytes - kCompressedHeadBytes;
  while (!frame.empty()) {
    const auto piece = frame.first(std::min(piece_bytes, frame.size()));
    put_head(head, out);
    std::copy(piece.begin(), piece.end(), out + kCompressedHeadBytes);
    out += kCompressedHeadBytes + piece.size();
    frame = frame.subspan(piece.size());
  }
}

}  // namespace sluice::wire
