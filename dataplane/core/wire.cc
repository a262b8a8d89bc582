// SPDX-License-Identifier: Apache-2.0
#include "dataplane/core/wire.h"

namespace sluice::wire {
namespace {

// WIRE.md, "Header": byte offsets.
constexpr size_t kAtVersion = 0;
constexpr size_t kAtType = 1;
constexpr size_t kAtFlags = 2;
constexpr size_t kAtHeaderBytes = 3;
constexpr size_t kAtKeyEpoch = 4;
constexpr size_t kAtCreditWanted = 5;  // 3 bytes
constexpr size_t kAtBlock = 5;         // of parity, and the next two:
constexpr size_t kAtRepairId = 6;
constexpr size_t kAtBlockDigest = 48;
constexpr size_t kAtFlowId = 8;
constexpr size_t kAtTxSeq = 16;
constexpr size_t kAtSendTime = 24;
constexpr size_t kAtOffset = 32;
constexpr size_t kAtObject = 40;
constexpr size_t kAtLength = 44;
constexpr size_t kAtDoneSeen = 48;
constexpr size_t kAtStatusesHeard = 52;
constexpr size_t kAtSeal = 56;
static_assert(kAtCreditWanted == kAtKeyEpoch + 1);
constexpr uint32_t kCreditWantedMax = (1U << 24) - 1;
static_assert(kAtSeal == kHeaderCoveredBytes && kAtSeal + kSealBytes == kHeaderBytes);

}  // namespace

std::string_view crc_kind_name(CrcKind kind) {
  switch (kind) {
    case CrcKind::kNone:
      return "none";
    case CrcKind::kCrc32c:
      return "crc32c";
    case CrcKind::kCrc64Ecma:
      return "crc64";
    case CrcKind::kRead:
      return "read";
  }
  return "unknown";
}

void encode(const Header& header, std::span<uint8_t, kHeaderBytes> out) {
  uint8_t* p = out.data();
  p[kAtVersion] = kVersion;
  p[kAtType] = static_cast<uint8_t>(header.type);
  p[kAtFlags] = header.flags;
  p[kAtHeaderBytes] = kHeaderBytes;
  store_be32(p + kAtKeyEpoch,
             static_cast<uint32_t>(header.key_epoch) << 24 | (header.credit_wanted & kCreditWantedMax));
  store_be64(p + kAtFlowId, header.flow_id);
  store_be64(p + kAtTxSeq, header.tx_seq);
  store_be64(p + kAtSendTime, header.send_time_ns);
  store_be64(p + kAtOffset, header.offset);
  store_be32(p + kAtObject, header.object);
  store_be32(p + kAtLength, header.length);
  store_be32(p + kAtDoneSeen, header.done_seen);
  store_be32(p + kAtStatusesHeard, header.statuses_heard);
  if (header.type == Type::kParity) {
    p[kAtBlock] = header.block;
    store_be16(p + kAtRepairId, header.repair_id);
    store_be64(p + kAtBlockDigest, header.block_digest);
  }
  store_be64(p + kAtSeal, 0);
  store_be64(p + kAtSeal + 8, 0);
}

Reject decode(std::span<const uint8_t> datagram, Header* out) {
  if (datagram.size() < kHeaderBytes) return Reject::kTooShort;
  const uint8_t* p = datagram.data();
  if (p[kAtVersion] != kVersion) return Reject::kBadVersion;
  if (p[kAtType] > static_cast<uint8_t>(kTypeLast)) return Reject::kBadType;
  if ((p[kAtFlags] & ~kFlagsKnown) != 0) return Reject::kBadType;
  if (p[kAtHeaderBytes] != kHeaderBytes) return Reject::kBadHeaderLength;
  out->type = static_cast<Type>(p[kAtType]);
  out->flags = p[kAtFlags];
  out->key_epoch = p[kAtKeyEpoch];
  out->credit_wanted = load_be32(p + kAtKeyEpoch) & kCreditWantedMax;
  out->flow_id = load_be64(p + kAtFlowId);
  out->tx_seq = load_be64(p + kAtTxSeq);
  out->send_time_ns = load_be64(p + kAtSendTime);
  out->offset = load_be64(p + kAtOffset);
  out->object = load_be32(p + kAtObject);
  out->length = load_be32(p + kAtLength);
  out->done_seen = load_be32(p + kAtDoneSeen);
  out->statuses_heard = load_be32(p + kAtStatusesHeard);
  if (out->type == Type::kParity) {
    out->block = p[kAtBlock];
    out->repair_id = load_be16(p + kAtRepairId);
    out->block_digest = load_be64(p + kAtBlockDigest);
    out->credit_wanted = out->done_seen = out->statuses_heard = 0;
    if ((out->flags & ~kFlagsOfParity) != 0) return Reject::kReservedNotZero;
  } else if (out->type == Type::kEcho) {
    const bool reflected = out->flags == kFlagReflected;
    if ((out->flags & ~kFlagsOfEcho) != 0 || (out->offset | out->object | out->credit_wanted) != 0 ||
        (reflected && (out->done_seen | out->statuses_heard) != 0))
      return Reject::kReservedNotZero;
  } else if (out->type != Type::kData) {
    if ((out->flags | out->object) != 0) return Reject::kReservedNotZero;
    if (out->type == Type::kStatus &&
        (out->offset | out->done_seen | out->statuses_heard | out->credit_wanted) != 0)
      return Reject::kReservedNotZero;
  }
  if (datagram.size() - kHeaderBytes != out->length) return Reject::kBadLength;
  return Reject::kNone;
}

}  // namespace sluice::wire
