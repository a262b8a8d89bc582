// The datagrams between two dataplanes: layout, encoding, and why one is refused.
//
// Pure. docs/WIRE.md is the specification of what stands here; a change here is a change there.
// Every multi-byte field is in network byte order. Reserved fields are zero and checked, as are those that a
// type does not use.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>

namespace sluice::wire {

inline constexpr uint8_t kVersion = 2;
inline constexpr size_t kHeaderBytes = 72;
// The seal covers the payload and these first bytes of the header, and stands behind them (WIRE.md, "Seal").
inline constexpr size_t kHeaderCoveredBytes = 56;
inline constexpr size_t kSealBytes = 16;
static_assert(kHeaderCoveredBytes + kSealBytes == kHeaderBytes);
inline constexpr uint32_t kChunkBytesMin = 256;
inline constexpr uint32_t kChunkBytesStep = 4;
inline constexpr uint32_t kChunkBytesMax = 32768;
inline constexpr uint32_t kExtentBytesMax = 1U << 20;
inline constexpr uint32_t kChunksPerExtentMax = kExtentBytesMax / kChunkBytesMin;

enum class Type : uint8_t {
  kData = 0,    // payload: one chunk
  kStatus = 1,  // payload: a status report (status.h), receiver to sender
  kProbe = 2,   // "I have sent everything below tx_seq", sender to receiver; payload: padding, if any
  kParity = 3,  // payload: a repair symbol of an erasure code, sender to receiver; only where that was agreed
  kEcho = 4,    // payload: anything, not protected; comes back as it came; only where that was agreed
};
inline constexpr Type kTypeLast = Type::kEcho;
// Both have one row of numbers, one chain of keys, and are under what was agreed for data.
constexpr bool is_numbered_as_data(Type type) { return type == Type::kData || type == Type::kParity; }

enum Flags : uint8_t {
  kFlagRetransmission = 1U << 0,  // these bytes were sent before (fast recovery)
  kFlagRepair = 1U << 1,          // sent because of a NEED; takes no credit
  kFlagCompressed = 1U << 2,      // a chunk of a compressed extent (compressed.h); only where that was agreed
  kFlagsKnown = kFlagRetransmission | kFlagRepair | kFlagCompressed,
  kFlagRaptorQ = 1U << 0,       // of parity: by which code; otherwise by Reed-Solomon
  kFlagOfCompressed = 1U << 2,  // of parity: the extent is compressed
  kFlagsOfParity = kFlagRaptorQ | kFlagOfCompressed,
  kFlagReflected = 1U << 0,  // of an echo: on its way back
  kFlagsOfEcho = kFlagReflected,
};
inline constexpr uint32_t kEchoesMax = 1U << 16;  // of one flow

// kNone and kRead protect nothing and are for measuring, into null:. With kRead both ends read every byte, so
// that what a sum costs can be told from what it costs that bytes come to a core at all.
enum class CrcKind : uint8_t { kNone = 0, kCrc32c = 1, kCrc64Ecma = 2, kRead = 3 };
std::string_view crc_kind_name(CrcKind kind);  // "none", "crc32c", "crc64", "read"
constexpr bool checks(CrcKind kind) { return kind == CrcKind::kCrc32c || kind == CrcKind::kCrc64Ecma; }

// What data are under, the stricter the larger. Statuses and probes are under AES-GCM in any case.
enum class Protection : uint8_t { kCrc = 0, kAes128Gcm = 1, kAes256Gcm = 2 };
inline constexpr std::string_view kProtectionNames[] = {"crc", "aes-128-gcm", "aes-256-gcm"};
inline std::string_view protection_name(Protection protection) {
  const auto i = static_cast<size_t>(protection);
  return i < std::size(kProtectionNames) ? kProtectionNames[i] : "unknown";
}

struct Header {
  Type type = Type::kData;
  uint8_t flags = 0;
  uint8_t key_epoch = 0;        // low 8 bits of that of its number; 0 where nothing is enciphered
  uint64_t flow_id = 0;         // named by the receiver at every attach
  uint64_t tx_seq = 0;          // never reused on a flow, data and parity together; others: see WIRE.md
  uint64_t send_time_ns = 0;    // sender's monotonic clock
  uint64_t offset = 0;          // of the chunk in the object; kParity: of the extent; kProbe: its number
  uint32_t object = 0;          // file number within the session
  uint32_t length = 0;          // payload bytes
  uint32_t done_seen = 0;       // completed extents of this flow that the sender has learned of
  uint32_t credit_wanted = 0;   // extents beyond the completed ones that the sender could use, < 2^24
  uint32_t statuses_heard = 0;  // statuses of this flow that the sender has taken
  // kParity alone, in place of the three fields before:
  uint8_t block = 0;          // of the extent
  uint16_t repair_id = 0;     // number of the symbol within its block
  uint64_t block_digest = 0;  // CRC-64 of the block's chunks
};

// Why a datagram is dropped; each is a counter of the same name (board/counters.def).
enum class Reject : uint8_t {
  kNone = 0,
  kTooShort,
  kBadVersion,
  kBadType,
  kBadHeaderLength,
  kReservedNotZero,
  kBadLength,
};

// What the seal covers; the seal is left zero (dataplane/seal writes it).
void encode(const Header& header, std::span<uint8_t, kHeaderBytes> out);
// Reads a header from the start of a UDP payload. `datagram` is the whole UDP payload: `length`
// must be exactly what follows the header. Never reads past it, and never at the seal.
Reject decode(std::span<const uint8_t> datagram, Header* out);

// Big-endian access to unaligned bytes.
inline uint16_t load_be16(const uint8_t* p) {
  uint16_t v;
  __builtin_memcpy(&v, p, 2);
  return __builtin_bswap16(v);
}
inline uint32_t load_be32(const uint8_t* p) {
  uint32_t v;
  __builtin_memcpy(&v, p, 4);
  return __builtin_bswap32(v);
}
inline uint64_t load_be64(const uint8_t* p) {
  uint64_t v;
  __builtin_memcpy(&v, p, 8);
  return __builtin_bswap64(v);
}
inline void store_be16(uint8_t* p, uint16_t v) {
  v = __builtin_bswap16(v);
  __builtin_memcpy(p, &v, 2);
}
inline void store_be32(uint8_t* p, uint32_t v) {
  v = __builtin_bswap32(v);
  __builtin_memcpy(p, &v, 4);
}
inline void store_be64(uint8_t* p, uint64_t v) {
  v = __builtin_bswap64(v);
  __builtin_memcpy(p, &v, 8);
}

}  // namespace sluice::wire
