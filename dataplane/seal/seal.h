// The one seam through which every datagram's bytes pass on their way out and in.
//
// Going out, a datagram is sealed: its header is written, and with it what lets the other side tell that
// header and payload arrived as they were sent. Coming in, it is opened: found right or not, and its payload
// put where it belongs. How, is a property of the flow, chosen once: its kind. A kind that enciphers fits in
// here as well: its key belongs to the flow, the first 56 bytes of header are what it authenticates beside
// the payload, and its cipher is the copy, so that it seals into the frame and opens into the place always.
//
// The rule of opening: no byte goes over a good one before it is known to be right. So there are two orders.
//   1. One pass. open() copies while it sums, to a place where nothing good lies yet: a part of an extent's
//      buffer whose chunk is missing. A datagram that turns out wrong leaves rubbish there, and the right
//      one is written over it.
//   2. Two passes. open() without a place only sums; Opened::place() then copies what was found good. For
//      files in memory, which may hold those very bytes already
//      (docs/decisions/0009-memory-in-huge-pages.md), and for the chunk that opens its extent, whose place is
//      not known before.
//
// Hot, pure; any thread. docs/WIRE.md, 1.2, has the arithmetic.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include "dataplane/base/check.h"
#include "dataplane/core/wire.h"
#include "dataplane/crc/crc.h"

namespace sluice::seal {

// A datagram that was opened. Refers to it: valid as long as the datagram's memory is.
class Opened {
 public:
  bool good() const { return good_; }
  // Of the payload, as it folds into the digests of extent and file. 0 when not good.
  uint64_t digest() const { return digest_; }
  // The payload lies where open() was told to put it.
  bool placed() const { return placed_; }
  // Copies the payload to where it belongs, payload_bytes() of them. Only of a good datagram that is not
  // placed yet.
  void place(uint8_t* to) const {
    CHECK(good_ && !placed_, "bytes go over others only after they were found to be right");
    if (payload_bytes_ > 0) std::memcpy(to, payload_, payload_bytes_);
  }
  uint32_t payload_bytes() const { return payload_bytes_; }

 private:
  friend class FlowSeal;
  bool good_ = false;
  bool placed_ = false;
  uint32_t payload_bytes_ = 0;
  const uint8_t* payload_ = nullptr;
  uint64_t digest_ = 0;
};

class FlowSeal {
 public:
  FlowSeal() = default;
  // `data_kind` is what both sides agreed on for data; statuses and probes are always under CRC-64.
  explicit FlowSeal(wire::CrcKind data_kind) : data_kind_(data_kind) {}

  wire::CrcKind data_kind() const { return data_kind_; }

  // Writes header and seal of a datagram to `header_out`, and the payload to `payload_out`; nullptr: the
  // payload leaves from where it lies. header.length is payload.size().
  // Returns the payload's digest.
  uint64_t seal(const wire::Header& header, std::span<const uint8_t> payload,
                std::span<uint8_t, wire::kHeaderBytes> header_out, uint8_t* payload_out) const;

  // `datagram` is a whole UDP payload, of which wire::decode made `header`. `empty_place`: header.length
  // bytes where no good byte lies, for the payload (order 1); nullptr: nothing is written (order 2). What was
  // placed so may have gone past the caches: publish() before a device or another thread reads it.
  Opened open(const wire::Header& header, std::span<const uint8_t> datagram, uint8_t* empty_place) const;

  static void publish() { crc::publish_copies(); }

 private:
  wire::CrcKind kind_of(wire::Type type) const {
    return type == wire::Type::kData ? data_kind_ : wire::CrcKind::kCrc64Ecma;
  }

  wire::CrcKind data_kind_ = wire::CrcKind::kCrc64Ecma;
};

// Inline, both: they are steps of building and taking one datagram, and their results stay in registers.

inline uint64_t FlowSeal::seal(const wire::Header& header, std::span<const uint8_t> payload,
                               std::span<uint8_t, wire::kHeaderBytes> header_out,
                               uint8_t* payload_out) const {
  DCHECK(header.length == payload.size(), "a header tells the length of what follows it");
  const wire::CrcKind kind = kind_of(header.type);
  wire::encode(header, header_out);
  const uint64_t digest = payload_out != nullptr
                              ? crc::copy(kind, 0, payload.data(), payload_out, payload.size())
                              : crc::compute(kind, 0, payload.data(), payload.size());
  wire::store_be64(&header_out[wire::kHeaderCoveredBytes],
                   crc::compute_header(kind, digest, header_out.first<wire::kHeaderCoveredBytes>()));
  return digest;
}

inline Opened FlowSeal::open(const wire::Header& header, std::span<const uint8_t> datagram,
                             uint8_t* empty_place) const {
  DCHECK(datagram.size() == wire::kHeaderBytes + header.length, "decode() holds the length to be right");
  const wire::CrcKind kind = kind_of(header.type);
  Opened opened;
  opened.payload_ = datagram.data() + wire::kHeaderBytes;
  opened.payload_bytes_ = header.length;
  const uint64_t digest = empty_place != nullptr
                              ? crc::copy_past_caches(kind, 0, opened.payload_, empty_place, header.length)
                              : crc::compute(kind, 0, opened.payload_, header.length);
  const auto covered = datagram.first<wire::kHeaderCoveredBytes>();
  const uint8_t* const field = &datagram[wire::kHeaderCoveredBytes];
  if (crc::compute_header(kind, digest, covered) != wire::load_be64(field) || wire::load_be64(field + 8) != 0) {
    return opened;
  }
  opened.good_ = true;
  opened.placed_ = empty_place != nullptr;
  opened.digest_ = digest;
  return opened;
}

}  // namespace sluice::seal
