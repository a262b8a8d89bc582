// The payload of a status datagram: what the receiver of a flow tells its sender, every 1-10 ms.
//
// Pure. WIRE.md, "Status". Completed extents are numbered in the order of completion and repeated
// until the sender has echoed their number (Header::done_seen), so none is ever lost; gaps (runs of
// lost tx_seq) are repeated in three statuses, and NEED over the control stream is behind them.
// Positive and negative acknowledgement together: Phatpackets (docs/SOURCES.md), section 2.2.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::wire {

inline constexpr size_t kStatusFixedBytes = 72;
inline constexpr size_t kStatusBytesMax = 1024;
inline constexpr uint32_t kStatusDoneMax = 64;
inline constexpr uint32_t kStatusGapsMax = 128;

struct DoneExtent {
  uint32_t object = 0;
  uint64_t number = 0;  // byte offset / extent_bytes
};

struct GapRun {
  uint64_t first = 0;
  uint64_t count = 0;
};

struct Status {
  uint64_t echo_send_time_ns = 0;  // send time of the newest datagram of this flow, 0: none yet
  uint64_t echo_hold_ns = 0;       // how long ago it arrived
  uint64_t received_end = 0;       // 1 + highest tx_seq received
  uint64_t credit_extents = 0;     // absolute number that the sender may have opened
  uint64_t bytes_received = 0;     // payload accepted
  int64_t delay_min_ns = 0;        // one-way, receiver clock minus sender clock: only differences mean
  int64_t delay_max_ns = 0;        // anything; over the interval since the status before
  uint32_t done_first = 0;         // number (mod 2^32) of done[0]
  uint32_t done_count = 0;
  uint32_t gap_count = 0;
  DoneExtent done[kStatusDoneMax];
  GapRun gaps[kStatusGapsMax];  // ascending, not touching
};

// Writes as many entries as fit in `out` (at least kStatusFixedBytes; kStatusBytesMax is enough for
// 64 + 64 entries of usual size); sets *done_written and *gaps_written. Returns bytes written.
size_t encode_status(const Status& status, std::span<uint8_t> out, uint32_t* done_written,
                     uint32_t* gaps_written);
// False when it does not parse; then *out is unspecified.
bool decode_status(std::span<const uint8_t> payload, Status* out);

}  // namespace sluice::wire
