// The chunks of an extent that gets a quarter as long, as an honest sender would send them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <tuple>
#include <vector>

#include "dataplane/coding/zstd_frame.h"
#include "dataplane/core/compressed.h"
#include "dataplane/crc/crc.h"

namespace sluice::lane::testing {

using Chunks = std::vector<std::vector<uint8_t>>;

inline Chunks make_compressed_chunks(uint32_t plain_bytes, uint32_t chunk_bytes, wire::CrcKind kind) {
  std::vector<uint8_t> plain(plain_bytes);
  uint64_t state = plain_bytes;
  for (uint8_t& byte : plain) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    byte = static_cast<uint8_t>(state >> 62);
  }
  static coding::Compressor compressor(wire::kExtentBytesMax);
  compressor.begin(plain, plain_bytes, coding::Effort::kFast);
  coding::Step step = coding::Step::kMore;
  while (step == coding::Step::kMore) step = compressor.step();
  Chunks chunks;
  if (step == coding::Step::kFailed) return chunks;
  const auto frame = compressor.frame();
  const auto wire_bytes = static_cast<uint32_t>(wire::wire_bytes_of_frame(frame.size(), chunk_bytes));
  std::vector<uint8_t> whole(wire_bytes);
  wire::put_chunks({.wire_bytes = wire_bytes,
                    .frame_crc = static_cast<uint32_t>(
                        crc::compute(wire::CrcKind::kCrc32c, 0, frame.data(), frame.size())),
                    .plain_digest = crc::compute(kind, 0, plain.data(), plain.size())},
                   frame, chunk_bytes, whole.data());
  for (size_t at = 0; at < whole.size(); at += chunk_bytes)
    chunks.emplace_back(
        whole.begin() + static_cast<std::ptrdiff_t>(at),
        whole.begin() + static_cast<std::ptrdiff_t>(std::min<size_t>(at + chunk_bytes, whole.size())));
  return chunks;
}

// Made once for each kind of flow.
inline const Chunks& compressed_chunks(uint32_t plain_bytes, uint32_t chunk_bytes, wire::CrcKind kind) {
  static std::map<std::tuple<uint32_t, uint32_t, wire::CrcKind>, Chunks> made;
  const auto [at, is_new] = made.try_emplace({plain_bytes, chunk_bytes, kind});
  if (is_new) at->second = make_compressed_chunks(plain_bytes, chunk_bytes, kind);
  return at->second;
}

}  // namespace sluice::lane::testing
