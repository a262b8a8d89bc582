// Any bytes as a status: what is accepted is in bounds, in order, and survives a round trip. The first two
// bytes are the room for encoding it again.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "dataplane/base/input_for_fuzz.h"
#include "dataplane/core/status.h"

namespace {

using namespace sluice;

bool same(const wire::Status& a, const wire::Status& b, uint32_t done, uint32_t gaps) {
  bool equal = a.echo_send_time_ns == b.echo_send_time_ns && a.echo_hold_ns == b.echo_hold_ns &&
               a.received_end == b.received_end && a.credit_extents == b.credit_extents &&
               a.bytes_received == b.bytes_received && a.delay_min_ns == b.delay_min_ns &&
               a.delay_max_ns == b.delay_max_ns && a.done_first == b.done_first;
  for (uint32_t i = 0; i < done; ++i) {
    equal = equal && a.done[i].object == b.done[i].object && a.done[i].number == b.done[i].number;
  }
  for (uint32_t i = 0; i < gaps; ++i) {
    equal = equal && a.gaps[i].first == b.gaps[i].first && a.gaps[i].count == b.gaps[i].count;
  }
  return equal;
}

void round_trip(const wire::Status& status, size_t room) {
  std::vector<uint8_t> bytes(room);  // exact: the sanitizer sees one byte more
  uint32_t done = 0;
  uint32_t gaps = 0;
  bytes.resize(wire::encode_status(status, bytes, &done, &gaps));
  fuzz::require(bytes.size() <= room && done <= status.done_count && gaps <= status.gap_count,
                "encoding stays within its room");
  wire::Status again;
  fuzz::require(wire::decode_status(bytes, &again), "what was encoded decodes");
  fuzz::require(again.done_count == done && again.gap_count == gaps && same(status, again, done, gaps),
                "and says the same");
  if (room >= wire::kStatusFixedBytes + 20 * (wire::kStatusDoneMax + wire::kStatusGapsMax)) {
    fuzz::require(done == status.done_count && gaps == status.gap_count, "with room enough, all of it");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const size_t room = wire::kStatusFixedBytes + input.take<uint16_t>() % 4096;
  const auto payload = input.rest();
  wire::Status status;
  if (!wire::decode_status(payload, &status)) return 0;
  fuzz::require(status.done_count <= wire::kStatusDoneMax && status.gap_count <= wire::kStatusGapsMax,
                "counts are in bounds");
  uint64_t end = 0;
  for (uint32_t i = 0; i < status.gap_count; ++i) {
    fuzz::require(status.gaps[i].first >= end && status.gaps[i].count > 0, "gaps ascend and are not empty");
    end = status.gaps[i].first + status.gaps[i].count;
    fuzz::require(end > status.gaps[i].first, "and do not run over");
  }
  round_trip(status, room);
  round_trip(status, 8192);
  return 0;
}
