// The payload of a status datagram: what the receiver of a flow tells its sender, every 1-10 ms.
//
// Pure. WIRE.md, "Status". Every number is a varint, so that a status is short where a channel loses long
// datagrams. Completed extents are numbered in the order of completion, listed as runs, and repeated until
// the sender has echoed their number (Header::done_seen), so none is ever lost; gaps (runs of lost tx_seq)
// are repeated in several statuses, and NEED over the control stream is behind them. Where most is lost, what
// extents still miss is told by place as well. Positive and negative
// acknowledgement together: Phatpackets (docs/SOURCES.md), section 2.2.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::wire {

inline constexpr size_t kStatusBytesMax = 1024;
// So much room always holds the numbers, one run and one gap, however large they are.
inline constexpr size_t kStatusBytesMin = 192;
inline constexpr uint32_t kStatusRunsMax = 127;   // one byte tells how many
inline constexpr uint32_t kStatusGapsMax = 127;   // so too
inline constexpr uint32_t kStatusDoneMax = 1024;  // extents of all runs together
inline constexpr uint32_t kPaddedSizesMax = 16;   // of padded probes, that one status tells of
inline constexpr uint32_t kStatusHolesMax = 32;   // extents whose holes it tells
inline constexpr uint32_t kStatusHoleRunsMax = 512;

struct DoneExtent {
  uint32_t object = 0;
  uint64_t number = 0;  // byte offset / extent_bytes
};

// Extents one behind the other, completed in this order.
struct DoneRun {
  uint32_t object = 0;
  uint32_t count = 0;
  uint64_t first = 0;  // number of the first one
};

struct GapRun {
  uint64_t first = 0;
  uint64_t count = 0;
};

// Padded probes of one size.
struct PaddedSize {
  uint32_t bytes = 0;  // of padding
  uint32_t count = 0;
};

// Chunks one behind the other, of one extent.
struct ChunkRun {
  uint32_t first = 0;
  uint32_t count = 0;
};

// What has not come of an extent, for a sender whose path loses most of what it sends.
struct ExtentHoles {
  uint32_t object = 0;
  uint32_t told = 0;    // of so many chunks, from the first one: the runs are those that are missing
  uint64_t number = 0;  // as in DoneExtent
  uint32_t run_count = 0;
};

struct Status {
  uint64_t echo_send_time_ns = 0;  // send time of the newest datagram of this flow, 0: none yet
  uint64_t echo_hold_ns = 0;       // how long ago it arrived
  uint64_t received_end = 0;       // 1 + highest tx_seq that came
  uint64_t datagrams_received =
      0;                        // with data and a number that had not come before, whatever became of them
  uint64_t no_room = 0;         // of them dropped for want of a buffer
  uint64_t crc_errors = 0;      // dropped because they were damaged; not counted above
  uint64_t credit_extents = 0;  // absolute number that the sender may have opened
  uint64_t advice_bps = 0;      // what the receiver's disk keeps up with, 0: no advice
  uint64_t bytes_received = 0;  // payload accepted
  int64_t delay_min_ns = 0;     // one-way, receiver clock minus sender clock: only differences mean
  int64_t delay_max_ns = 0;     // anything; over the interval since the status before
  uint32_t done_end = 0;        // extents completed in all (mod 2^32)
  uint32_t done_back = 0;       // the list begins so many before the end
  uint32_t run_count = 0;
  uint32_t gap_count = 0;
  DoneRun runs[kStatusRunsMax];
  GapRun gaps[kStatusGapsMax];  // ascending, not touching
  uint32_t padded_count = 0;
  PaddedSize padded[kPaddedSizesMax];  // that came lately: how many of which size
  uint32_t holes_count = 0;
  ExtentHoles holes[kStatusHolesMax];
  ChunkRun hole_runs[kStatusHoleRunsMax];  // those of the first extent, then those of the next

  uint32_t done_first() const { return done_end - done_back; }
};

struct StatusWritten {
  size_t bytes = 0;
  uint32_t runs = 0;
  uint32_t gaps = 0;
  uint32_t padded = 0;
  uint32_t holes = 0;  // extents, the last one perhaps with fewer runs and less told
};

// Writes as many entries as fit in `out`, which is at least kStatusBytesMin. Where there are gaps, runs take
// half of the room at most; where there are holes, gaps take half of what is left. Padded sizes are all
// there, or none is where that would leave less than the least.
StatusWritten encode_status(const Status& status, std::span<uint8_t> out);
// False when it does not parse; then *out is unspecified.
bool decode_status(std::span<const uint8_t> payload, Status* out);

}  // namespace sluice::wire
