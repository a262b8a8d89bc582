// Any bytes as a status: what is accepted is in bounds, in order, and survives a round trip. The first two
// bytes are the room for encoding it again.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "dataplane/base/input_for_fuzz.h"
#include "dataplane/core/status.h"
#include "dataplane/core/wire.h"

namespace {

using namespace sluice;

bool same(const wire::Status& a, const wire::Status& b, const wire::StatusWritten& said) {
  bool equal = a.echo_send_time_ns == b.echo_send_time_ns && a.echo_hold_ns == b.echo_hold_ns &&
               a.received_end == b.received_end && a.datagrams_received == b.datagrams_received &&
               a.no_room == b.no_room && a.crc_errors == b.crc_errors &&
               a.credit_extents == b.credit_extents && a.advice_bps == b.advice_bps &&
               a.bytes_received == b.bytes_received && a.delay_min_ns == b.delay_min_ns &&
               a.delay_max_ns == b.delay_max_ns && a.done_end == b.done_end && a.done_back == b.done_back;
  for (uint32_t i = 0; i < said.runs; ++i) {
    equal = equal && a.runs[i].object == b.runs[i].object && a.runs[i].first == b.runs[i].first &&
            a.runs[i].count == b.runs[i].count;
  }
  for (uint32_t i = 0; i < said.gaps; ++i) {
    equal = equal && a.gaps[i].first == b.gaps[i].first && a.gaps[i].count == b.gaps[i].count;
  }
  for (uint32_t i = 0; i < said.padded; ++i) {
    equal = equal && a.padded[i].bytes == b.padded[i].bytes && a.padded[i].count == b.padded[i].count;
  }
  uint32_t run = 0;
  for (uint32_t i = 0; i < said.holes; ++i) {
    const bool whole = b.holes[i].run_count == a.holes[i].run_count;
    equal = equal && a.holes[i].object == b.holes[i].object && a.holes[i].number == b.holes[i].number &&
            (whole ? b.holes[i].told == a.holes[i].told : i + 1 == said.holes);
    for (uint32_t n = 0; n < b.holes[i].run_count; ++n, ++run) {
      equal = equal && a.hole_runs[run].first == b.hole_runs[run].first &&
              a.hole_runs[run].count == b.hole_runs[run].count;
    }
  }
  return equal;
}

void round_trip(const wire::Status& status, size_t room) {
  std::vector<uint8_t> bytes(room);  // exact: the sanitizer sees one byte more
  const wire::StatusWritten said = wire::encode_status(status, bytes);
  bytes.resize(said.bytes);
  fuzz::require(bytes.size() <= room && said.runs <= status.run_count && said.gaps <= status.gap_count,
                "encoding stays within its room");
  fuzz::require((said.runs > 0 || status.run_count == 0) && (said.gaps > 0 || status.gap_count == 0),
                "one of each always fits");
  wire::Status again;
  fuzz::require(wire::decode_status(bytes, &again), "what was encoded decodes");
  fuzz::require(said.padded == status.padded_count || said.padded == 0,
                "padded sizes are all there, or none is");
  fuzz::require(again.run_count == said.runs && again.gap_count == said.gaps &&
                    again.padded_count == said.padded && again.holes_count == said.holes &&
                    same(status, again, said),
                "and says the same");
  if (room >= wire::kStatusBytesMin + 40 * (wire::kStatusRunsMax + wire::kStatusGapsMax)) {
    fuzz::require(
        said.runs == status.run_count && said.gaps == status.gap_count && said.padded == status.padded_count,
        "with room enough, all of it");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const size_t room = wire::kStatusBytesMin + input.take<uint16_t>() % 4096;
  const auto payload = input.rest();
  wire::Status status;
  if (!wire::decode_status(payload, &status)) return 0;
  fuzz::require(status.run_count <= wire::kStatusRunsMax && status.gap_count <= wire::kStatusGapsMax &&
                    status.padded_count <= wire::kPaddedSizesMax &&
                    status.holes_count <= wire::kStatusHolesMax,
                "counts are in bounds");
  uint64_t extents = 0;
  for (uint32_t i = 0; i < status.run_count; ++i) {
    fuzz::require(status.runs[i].count > 0, "a run is not empty");
    extents += status.runs[i].count;
  }
  fuzz::require(extents <= wire::kStatusDoneMax && extents <= status.done_back, "as many as there can be");
  uint64_t end = 0;
  for (uint32_t i = 0; i < status.gap_count; ++i) {
    fuzz::require(status.gaps[i].first >= end && status.gaps[i].count > 0, "gaps ascend and are not empty");
    end = status.gaps[i].first + status.gaps[i].count;
    fuzz::require(end > status.gaps[i].first, "and do not run over");
  }
  uint32_t runs = 0;
  for (uint32_t i = 0; i < status.holes_count; ++i) {
    uint32_t missing_end = 0;
    for (uint32_t n = 0; n < status.holes[i].run_count; ++n, ++runs) {
      const wire::ChunkRun& run = status.hole_runs[runs];
      fuzz::require(run.first >= missing_end && run.count > 0, "holes ascend and are not empty");
      missing_end = run.first + run.count;
    }
    fuzz::require(missing_end <= status.holes[i].told && status.holes[i].told <= wire::kChunksPerExtentMax,
                  "and lie within what is told");
  }
  fuzz::require(runs <= wire::kStatusHoleRunsMax, "as many as there can be");
  round_trip(status, room);
  round_trip(status, 16384);
  return 0;
}
