// SPDX-License-Identifier: Apache-2.0
#include "dataplane/core/status.h"

#include "dataplane/core/wire.h"

namespace sluice::wire {
namespace {

constexpr size_t kVarintBytesMax = 10;
constexpr size_t kAtDoneCount = 60;
constexpr size_t kAtGapCount = 62;
constexpr size_t kAtGapBase = 64;

// LEB128: seven bits a byte, low ones first, the top bit says that another byte follows.
uint8_t* put_varint(uint8_t* p, uint64_t v) {
  while (v >= 0x80) {
    *p++ = static_cast<uint8_t>(v) | 0x80;
    v >>= 7;
  }
  *p++ = static_cast<uint8_t>(v);
  return p;
}

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
  bool at_end() const { return p_ == end_; }

 private:
  const uint8_t* p_;
  const uint8_t* end_;
};

}  // namespace

size_t encode_status(const Status& s, std::span<uint8_t> out, uint32_t* done_written,
                     uint32_t* gaps_written) {
  uint8_t* const begin = out.data();
  const uint8_t* const end = begin + out.size();
  store_be64(begin, s.echo_send_time_ns);
  store_be64(begin + 8, s.echo_hold_ns);
  store_be64(begin + 16, s.received_end);
  store_be64(begin + 24, s.credit_extents);
  store_be64(begin + 32, s.bytes_received);
  store_be64(begin + 40, static_cast<uint64_t>(s.delay_min_ns));
  store_be64(begin + 48, static_cast<uint64_t>(s.delay_max_ns));
  store_be32(begin + 56, s.done_first);
  const uint64_t base = s.gap_count > 0 ? s.gaps[0].first : 0;
  store_be64(begin + kAtGapBase, base);
  uint8_t* p = begin + kStatusFixedBytes;

  uint32_t done = 0;
  for (; done < s.done_count && p + 2 * kVarintBytesMax <= end; ++done) {
    p = put_varint(p, s.done[done].object);
    p = put_varint(p, s.done[done].number);
  }
  uint32_t gaps = 0;
  uint64_t previous_end = base;
  for (; gaps < s.gap_count && p + 2 * kVarintBytesMax <= end; ++gaps) {
    p = put_varint(p, s.gaps[gaps].first - previous_end);
    p = put_varint(p, s.gaps[gaps].count);
    previous_end = s.gaps[gaps].first + s.gaps[gaps].count;
  }
  store_be16(begin + kAtDoneCount, static_cast<uint16_t>(done));
  store_be16(begin + kAtGapCount, static_cast<uint16_t>(gaps));
  *done_written = done;
  *gaps_written = gaps;
  return static_cast<size_t>(p - begin);
}

bool decode_status(std::span<const uint8_t> payload, Status* out) {
  if (payload.size() < kStatusFixedBytes) return false;
  const uint8_t* const p = payload.data();
  out->echo_send_time_ns = load_be64(p);
  out->echo_hold_ns = load_be64(p + 8);
  out->received_end = load_be64(p + 16);
  out->credit_extents = load_be64(p + 24);
  out->bytes_received = load_be64(p + 32);
  out->delay_min_ns = static_cast<int64_t>(load_be64(p + 40));
  out->delay_max_ns = static_cast<int64_t>(load_be64(p + 48));
  out->done_first = load_be32(p + 56);
  out->done_count = load_be16(p + kAtDoneCount);
  out->gap_count = load_be16(p + kAtGapCount);
  if (out->done_count > kStatusDoneMax || out->gap_count > kStatusGapsMax) return false;

  Reader reader(p + kStatusFixedBytes, p + payload.size());
  for (uint32_t i = 0; i < out->done_count; ++i) {
    uint64_t object = 0;
    if (!reader.varint(&object) || object > UINT32_MAX || !reader.varint(&out->done[i].number)) return false;
    out->done[i].object = static_cast<uint32_t>(object);
  }
  uint64_t previous_end = load_be64(p + kAtGapBase);
  for (uint32_t i = 0; i < out->gap_count; ++i) {
    uint64_t skip = 0;
    uint64_t count = 0;
    if (!reader.varint(&skip) || !reader.varint(&count) || count == 0) return false;
    GapRun& gap = out->gaps[i];
    if (__builtin_add_overflow(previous_end, skip, &gap.first)) return false;
    gap.count = count;
    if (__builtin_add_overflow(gap.first, count, &previous_end)) return false;
  }
  return reader.at_end();
}

}  // namespace sluice::wire
