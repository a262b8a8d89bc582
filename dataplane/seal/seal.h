// The one seam through which every datagram's bytes pass on their way out and in.
//
// Going out, a datagram is sealed: its header is written, and with it what lets the other side tell that
// header and payload arrived as they were sent, and, but for data under `crc`, that this flow's peer sent
// them. Coming in, it is opened: found right or not, and its payload put where it belongs. How, is a property
// of the flow, chosen once. Statuses and probes are enciphered always, data unless both sides want only a
// CRC.
//
// The rule of opening: no byte goes over a good one before it is known to be right. So there are two orders.
//   1. One pass. open() copies while it sums, or deciphers, to a place where nothing good lies yet: a part
//      of an extent's buffer whose chunk is missing. A datagram that turns out wrong leaves rubbish there,
//      and the right one is written over it.
//   2. Two passes. open() without a place only sums, or deciphers into the scratch; Opened::place() then
//      copies what was found good. For files in memory, which may hold those very bytes already
//      (docs/decisions/0009-memory-in-huge-pages.md), and for the chunk that opens its extent, whose place
//      is not known before.
//
// Hot; one thread, since keys move on. docs/WIRE.md, 1.2 and 1.3, has the arithmetic.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include "dataplane/base/check.h"
#include "dataplane/core/wire.h"
#include "dataplane/crc/crc.h"
#include "dataplane/seal/flow_keys.h"

namespace sluice::seal {

enum class Outcome : uint8_t {
  kGood,
  kWrong,     // its CRC or tag is another one
  kBadEpoch,  // its key_epoch is not that of its number, or no key of that epoch is held
};

// A datagram that was opened. Refers to it, or to the scratch: valid as long as the datagram's memory is, and
// until another one is opened.
class Opened {
 public:
  bool good() const { return outcome_ == Outcome::kGood; }
  Outcome outcome() const { return outcome_; }
  // Of the payload, as it folds into the digests of extent and file. 0 when not good.
  uint64_t digest() const { return digest_; }
  // The payload lies where open() was told to put it.
  bool placed() const { return placed_; }
  // Copies the payload to where it belongs, payload_bytes() of them. Only of a good datagram that is not
  // placed yet.
  void place(uint8_t* to) const {
    CHECK(good() && !placed_, "bytes go over others only after they were found to be right");
    if (payload_bytes_ > 0) std::memcpy(to, payload_, payload_bytes_);
  }
  uint32_t payload_bytes() const { return payload_bytes_; }
  // The payload, wherever it lies. Only of a good datagram.
  std::span<const uint8_t> payload() const { return {payload_, payload_bytes_}; }

 private:
  friend class FlowSeal;
  Outcome outcome_ = Outcome::kWrong;
  bool placed_ = false;
  uint32_t payload_bytes_ = 0;
  const uint8_t* payload_ = nullptr;
  uint64_t digest_ = 0;
};

// How a payload is written that another core or a device reads next.
enum class Store : uint8_t { kThroughCaches, kPastCaches };

// What the payload of any datagram fits into; a worker has one for all its flows. What is sealed has its own
// place: what was opened may still lie in the other.
struct alignas(64) Scratch {
  std::array<uint8_t, wire::kChunkBytesMax> bytes;
  alignas(64) std::array<uint8_t, wire::kChunkBytesMax> sealed;
};

class FlowSeal {
 public:
  FlowSeal() = default;
  // `data_kind` is what both sides agreed on for digests. `keys` and `scratch` outlive it.
  FlowSeal(wire::CrcKind data_kind, wire::Protection protection, FlowKeys& keys, Scratch& scratch)
      : data_kind_(data_kind), protection_(protection), keys_(&keys), scratch_(&scratch) {}

  wire::CrcKind data_kind() const { return data_kind_; }
  wire::Protection protection() const { return protection_; }
  // Its payload is written where it leaves from, never sent from where it lies. Of an echo only the header is
  // protected, so that a payload which was damaged on the way is seen, and not dropped.
  bool enciphers(wire::Type type) const {
    return !wire::is_numbered_as_data(type) || protection_ != wire::Protection::kCrc;
  }

  // Writes header and seal of a datagram to `header_out`, and the payload to `payload_out`; nullptr: the
  // payload leaves from where it lies, which is for those that are not enciphered. header.length is
  // payload.size(); header.key_epoch is not looked at. `store`: how the payload is written there. Returns the
  // payload's digest; 0 if it is no data.
  uint64_t seal(const wire::Header& header, std::span<const uint8_t> payload,
                std::span<uint8_t, wire::kHeaderBytes> header_out, uint8_t* payload_out,
                Store store = Store::kThroughCaches);

  // `datagram` is a whole UDP payload, of which wire::decode made `header`. `empty_place`: header.length
  // bytes where no good byte lies, for the payload (order 1); nullptr: nothing is written there (order 2).
  // What was placed so may have gone past the caches: publish() before a device or another thread reads it.
  Opened open(const wire::Header& header, std::span<const uint8_t> datagram, uint8_t* empty_place);

  static void publish() { crc::publish_copies(); }

 private:
  uint64_t encipher(const wire::Header& header, std::span<const uint8_t> payload,
                    std::span<uint8_t, wire::kHeaderBytes> header_out, uint8_t* payload_out, Store store);
  Opened decipher(const wire::Header& header, std::span<const uint8_t> datagram, uint8_t* empty_place);
  void seal_echo(const wire::Header& header, std::span<const uint8_t> payload,
                 std::span<uint8_t, wire::kHeaderBytes> header_out, uint8_t* payload_out);
  Opened open_echo(const wire::Header& header, std::span<const uint8_t> datagram);

  wire::CrcKind data_kind_ = wire::CrcKind::kCrc64Ecma;
  wire::Protection protection_ = wire::Protection::kCrc;
  FlowKeys* keys_ = nullptr;
  Scratch* scratch_ = nullptr;
};

// Inline, both: they are steps of building and taking one datagram, and their results stay in registers.

inline uint64_t FlowSeal::seal(const wire::Header& header, std::span<const uint8_t> payload,
                               std::span<uint8_t, wire::kHeaderBytes> header_out, uint8_t* payload_out,
                               Store store) {
  DCHECK(header.length == payload.size(), "a header tells the length of what follows it");
  if (enciphers(header.type)) return encipher(header, payload, header_out, payload_out, store);
  wire::encode(header, header_out);
  uint64_t digest = 0;
  if (payload_out == nullptr) {
    digest = crc::compute(data_kind_, 0, payload.data(), payload.size());
  } else if (store == Store::kThroughCaches) {
    digest = crc::copy(data_kind_, 0, payload.data(), payload_out, payload.size());
  } else {
    digest = crc::copy_past_caches(data_kind_, 0, payload.data(), payload_out, payload.size());
    crc::publish_copies();
  }
  wire::store_be64(&header_out[wire::kHeaderCoveredBytes],
                   crc::compute_header(data_kind_, digest, header_out.first<wire::kHeaderCoveredBytes>()));
  return digest;
}

inline Opened FlowSeal::open(const wire::Header& header, std::span<const uint8_t> datagram,
                             uint8_t* empty_place) {
  DCHECK(datagram.size() == wire::kHeaderBytes + header.length, "decode() holds the length to be right");
  if (enciphers(header.type)) return decipher(header, datagram, empty_place);
  Opened opened;
  if (header.key_epoch != 0) {
    opened.outcome_ = Outcome::kBadEpoch;
    return opened;
  }
  opened.payload_ = datagram.data() + wire::kHeaderBytes;
  opened.payload_bytes_ = header.length;
  const uint64_t digest =
      empty_place != nullptr
          ? crc::copy_past_caches(data_kind_, 0, opened.payload_, empty_place, header.length)
          : crc::compute(data_kind_, 0, opened.payload_, header.length);
  const auto covered = datagram.first<wire::kHeaderCoveredBytes>();
  const uint8_t* const field = &datagram[wire::kHeaderCoveredBytes];
  if (crc::compute_header(data_kind_, digest, covered) != wire::load_be64(field) ||
      wire::load_be64(field + 8) != 0) {
    return opened;
  }
  opened.outcome_ = Outcome::kGood;
  opened.placed_ = empty_place != nullptr;
  opened.digest_ = digest;
  return opened;
}

}  // namespace sluice::seal
