// SPDX-License-Identifier: Apache-2.0
#include "dataplane/core/status.h"

#include <bit>

#include "dataplane/base/check.h"
#include "dataplane/core/wire.h"

namespace sluice::wire {
namespace {

constexpr size_t kNumbers = 13;  // before the two counts
constexpr size_t kVarintBytesMax = 10;
constexpr size_t kRunBytesMax = 5 + 10 + 2;
constexpr size_t kGapBytesMax = 10 + 10;
static_assert(kStatusBytesMin >= kNumbers * kVarintBytesMax + 2 + 2 * kGapBytesMax);
static_assert(kGapBytesMax >= kRunBytesMax);
static_assert(kStatusRunsMax < 128 && kStatusGapsMax < 128 && kStatusHolesMax < 128);

// LEB128: seven bits a byte, low ones first, the top bit says that another byte follows.
uint8_t* put_varint(uint8_t* p, uint64_t v) {
  while (v >= 0x80) {
    *p++ = static_cast<uint8_t>(v) | 0x80;
    v >>= 7;
  }
  *p++ = static_cast<uint8_t>(v);
  return p;
}
size_t varint_bytes(uint64_t v) { return (static_cast<size_t>(std::bit_width(v | 1)) + 6) / 7; }

// Small numbers of either sign become small ones: 0, -1, 1, -2 are 0, 1, 2, 3.
uint64_t folded(uint64_t signed_value) {
  return signed_value << 1 ^ (signed_value >> 63 != 0 ? ~uint64_t{0} : 0);
}
uint64_t unfolded(uint64_t v) { return v >> 1 ^ ((v & 1) != 0 ? ~uint64_t{0} : 0); }

class Reader {
 public:
  Reader(const uint8_t* p, const uint8_t* end) : p_(p), end_(end) {}

  bool varint(uint64_t* out) {
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (p_ == end_) return false;
      const uint64_t byte = *p_++;
      if (shift == 63 && byte > 1) return false;
      v |= (byte & 0x7F) << shift;
      if (byte < 0x80) {
        *out = v;
        return true;
      }
    }
    return false;
  }
  bool varint(uint32_t* out) {
    uint64_t v = 0;
    if (!varint(&v) || v > UINT32_MAX) return false;
    *out = static_cast<uint32_t>(v);
    return true;
  }
  bool at_end() const { return p_ == end_; }

 private:
  const uint8_t* p_;
  const uint8_t* end_;
};

bool decode_numbers(Reader* reader, Status* out) {
  uint64_t delay = 0;
  uint64_t spread = 0;
  if (!reader->varint(&out->echo_send_time_ns) || !reader->varint(&out->echo_hold_ns) ||
      !reader->varint(&out->received_end) || !reader->varint(&out->datagrams_received) ||
      !reader->varint(&out->no_room) || !reader->varint(&out->crc_errors) ||
      !reader->varint(&out->credit_extents) || !reader->varint(&out->advice_bps) ||
      !reader->varint(&out->bytes_received) || !reader->varint(&delay) || !reader->varint(&spread) ||
      !reader->varint(&out->done_end) || !reader->varint(&out->done_back) ||
      !reader->varint(&out->run_count) || !reader->varint(&out->gap_count)) {
    return false;
  }
  const uint64_t delay_min = unfolded(delay);
  out->delay_min_ns = static_cast<int64_t>(delay_min);
  out->delay_max_ns = static_cast<int64_t>(delay_min + spread);
  return out->delay_max_ns >= out->delay_min_ns && spread <= INT64_MAX && out->run_count <= kStatusRunsMax &&
         out->gap_count <= kStatusGapsMax;
}

bool decode_runs(Reader* reader, Status* out) {
  uint32_t extents = 0;
  uint64_t previous_end = 0;
  for (uint32_t i = 0; i < out->run_count; ++i) {
    DoneRun& run = out->runs[i];
    uint64_t skip = 0;
    uint64_t run_end = 0;
    if (!reader->varint(&run.object) || !reader->varint(&skip) || !reader->varint(&run.count)) return false;
    if (i > 0 && run.object != out->runs[i - 1].object) previous_end = 0;
    run.first = previous_end + unfolded(skip);
    if (run.count == 0 || run.count > kStatusDoneMax - extents ||
        __builtin_add_overflow(run.first, run.count, &run_end)) {
      return false;
    }
    extents += run.count;
    previous_end = run_end;
  }
  return extents <= out->done_back;
}

// Behind all of the above, or not there. A 0 stands only where holes follow.
bool decode_padded(Reader* reader, Status* out) {
  out->padded_count = 0;
  if (reader->at_end()) return true;
  if (!reader->varint(&out->padded_count) || out->padded_count > kPaddedSizesMax) return false;
  if (out->padded_count == 0 && reader->at_end()) return false;
  for (uint32_t i = 0; i < out->padded_count; ++i) {
    PaddedSize& size = out->padded[i];
    if (!reader->varint(&size.bytes) || !reader->varint(&size.count)) return false;
    if (size.bytes == 0 || size.bytes > kChunkBytesMax || size.count == 0) return false;
  }
  return true;
}

// At the end, or not there.
bool decode_holes(Reader* reader, Status* out) {
  out->holes_count = 0;
  if (reader->at_end()) return true;
  if (!reader->varint(&out->holes_count) || out->holes_count == 0 || out->holes_count > kStatusHolesMax)
    return false;
  uint32_t runs = 0;
  for (uint32_t i = 0; i < out->holes_count; ++i) {
    ExtentHoles& holes = out->holes[i];
    if (!reader->varint(&holes.object) || !reader->varint(&holes.number) || !reader->varint(&holes.told) ||
        !reader->varint(&holes.run_count) || holes.told > kChunksPerExtentMax ||
        holes.run_count > kStatusHoleRunsMax - runs) {
      return false;
    }
    uint32_t previous_end = 0;
    for (uint32_t n = 0; n < holes.run_count; ++n) {
      ChunkRun& run = out->hole_runs[runs++];
      uint32_t skip = 0;
      if (!reader->varint(&skip) || !reader->varint(&run.count) || run.count == 0) return false;
      const uint32_t room = holes.told - previous_end;
      if (skip > room || run.count > room - skip) return false;
      run.first = previous_end + skip;
      previous_end = run.first + run.count;
    }
  }
  return true;
}

// How many of the runs fit into `room` bytes with what stands before them; 0: none.
uint32_t hole_runs_that_fit(const ExtentHoles& holes, const ChunkRun* runs, size_t room) {
  size_t bytes = varint_bytes(holes.object) + varint_bytes(holes.number) + varint_bytes(holes.told) +
                 varint_bytes(holes.run_count);
  uint32_t previous_end = 0;
  uint32_t count = 0;
  for (; count < holes.run_count; ++count) {
    bytes += varint_bytes(runs[count].first - previous_end) + varint_bytes(runs[count].count);
    if (bytes > room) break;
    previous_end = runs[count].first + runs[count].count;
  }
  return count;
}

// From `p` on, where `with_padded` says whether padded sizes stand before. Returns where they end.
uint8_t* put_holes(const Status& s, bool with_padded, uint8_t* p, const uint8_t* end, uint32_t* written) {
  uint8_t* const begin = p;
  if (end - p < 2) return begin;
  if (!with_padded) *p++ = 0;
  uint8_t* const extents = p++;
  const ChunkRun* runs = s.hole_runs;
  for (bool all = true; all && *written < s.holes_count && p < end; ++*written) {
    const ExtentHoles& holes = s.holes[*written];
    const uint32_t count = hole_runs_that_fit(holes, runs, static_cast<size_t>(end - p));
    if (count == 0) break;
    all = count == holes.run_count;
    const uint32_t told = all ? holes.told : runs[count].first;
    p = put_varint(put_varint(p, holes.object), holes.number);
    p = put_varint(put_varint(p, told), count);
    uint32_t previous_end = 0;
    for (uint32_t n = 0; n < count; ++n) {
      p = put_varint(put_varint(p, runs[n].first - previous_end), runs[n].count);
      previous_end = runs[n].first + runs[n].count;
    }
    runs += count;
  }
  if (*written == 0) return begin;
  *extents = static_cast<uint8_t>(*written);
  return p;
}

size_t padded_bytes(const Status& s) {
  size_t bytes = s.padded_count > 0 ? varint_bytes(s.padded_count) : 0;
  for (uint32_t i = 0; i < s.padded_count; ++i) {
    bytes += varint_bytes(s.padded[i].bytes) + varint_bytes(s.padded[i].count);
  }
  return bytes;
}

}  // namespace

StatusWritten encode_status(const Status& s, std::span<uint8_t> out) {
  CHECK(out.size() >= kStatusBytesMin, "whoever says a status gives it room for its numbers");
  const size_t padded = padded_bytes(s);
  const bool with_padded = padded > 0 && out.size() >= kStatusBytesMin + padded;
  const uint8_t* const end = out.data() + out.size() - (with_padded ? padded : 0);
  uint8_t* p = out.data();
  const auto delay_min = static_cast<uint64_t>(s.delay_min_ns);
  for (const uint64_t number :
       {s.echo_send_time_ns, s.echo_hold_ns, s.received_end, s.datagrams_received, s.no_room, s.crc_errors,
        s.credit_extents, s.advice_bps, s.bytes_received, folded(delay_min),
        static_cast<uint64_t>(s.delay_max_ns) - delay_min, uint64_t{s.done_end}, uint64_t{s.done_back}}) {
    p = put_varint(p, number);
  }
  uint8_t* const counts = p;
  p += 2;

  StatusWritten written;
  const uint8_t* const runs_end = s.gap_count > 0 ? p + (end - p) / 2 : end;
  uint64_t previous_end = 0;
  for (; written.runs < s.run_count; ++written.runs) {
    const DoneRun& run = s.runs[written.runs];
    if (written.runs > 0 && run.object != s.runs[written.runs - 1].object) previous_end = 0;
    const uint64_t skip = folded(run.first - previous_end);
    if (p + varint_bytes(run.object) + varint_bytes(skip) + varint_bytes(run.count) > runs_end) break;
    p = put_varint(put_varint(put_varint(p, run.object), skip), run.count);
    previous_end = run.first + run.count;
  }
  previous_end = 0;
  const uint8_t* const gaps_end = s.holes_count > 0 ? end - (end - p) / 2 : end;
  for (; written.gaps < s.gap_count; ++written.gaps) {
    const GapRun& gap = s.gaps[written.gaps];
    const uint64_t skip = gap.first - previous_end;
    const bool first = written.gaps == 0;  // there is room for one, however large
    if (p + varint_bytes(skip) + varint_bytes(gap.count) > (first ? end : gaps_end)) break;
    p = put_varint(put_varint(p, skip), gap.count);
    previous_end = gap.first + gap.count;
  }
  counts[0] = static_cast<uint8_t>(written.runs);
  counts[1] = static_cast<uint8_t>(written.gaps);
  if (with_padded) {
    p = put_varint(p, s.padded_count);
    for (; written.padded < s.padded_count; ++written.padded) {
      p = put_varint(put_varint(p, s.padded[written.padded].bytes), s.padded[written.padded].count);
    }
  }
  if (s.holes_count > 0) p = put_holes(s, with_padded, p, out.data() + out.size(), &written.holes);
  written.bytes = static_cast<size_t>(p - out.data());
  return written;
}

bool decode_status(std::span<const uint8_t> payload, Status* out) {
  Reader reader(payload.data(), payload.data() + payload.size());
  if (!decode_numbers(&reader, out) || !decode_runs(&reader, out)) return false;
  uint64_t previous_end = 0;
  for (uint32_t i = 0; i < out->gap_count; ++i) {
    uint64_t skip = 0;
    GapRun& gap = out->gaps[i];
    if (!reader.varint(&skip) || !reader.varint(&gap.count) || gap.count == 0) return false;
    if (__builtin_add_overflow(previous_end, skip, &gap.first)) return false;
    if (__builtin_add_overflow(gap.first, gap.count, &previous_end)) return false;
  }
  return decode_padded(&reader, out) && decode_holes(&reader, out) && reader.at_end();
}

}  // namespace sluice::wire
