// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/forger.h"

#include <optional>

#include "dataplane/core/status.h"
#include "dataplane/crc/crc.h"
#include "tools/sim/frame.h"

namespace sluice::sim {
namespace {

// Places in a header (docs/WIRE.md 1.1).
constexpr size_t kAtCreditWanted = 5;  // three bytes
constexpr size_t kAtBlock = 5;         // of parity
constexpr size_t kAtRepairId = 6;      // likewise
constexpr size_t kAtTxSeq = 16;
constexpr size_t kAtSendTime = 24;
constexpr size_t kAtObject = 40;
constexpr size_t kAtLength = 44;
constexpr size_t kAtDoneSeen = 48;
constexpr size_t kAtStatusesHeard = 52;
constexpr size_t kAtBlockDigest = 48;  // of parity

// Its length may be another one now.
void make_right(std::vector<uint8_t>* frame, size_t payload_bytes, std::optional<wire::CrcKind> kind) {
  uint8_t* const sluice = frame->data() + kSluiceAt;
  wire::store_be32(sluice + kAtLength, static_cast<uint32_t>(payload_bytes));
  if (kind) {
    const uint64_t digest = crc::compute(*kind, 0, sluice + wire::kHeaderBytes, payload_bytes);
    wire::store_be64(sluice + wire::kHeaderCoveredBytes,
                     crc::compute(*kind, digest, sluice, wire::kHeaderCoveredBytes));
  }
  const auto udp_bytes = static_cast<uint16_t>(8 + wire::kHeaderBytes + payload_bytes);
  uint8_t* const ip = frame->data() + kIpAt;
  wire::store_be16(ip + 20 + 4, udp_bytes);
  wire::store_be16(ip + 20 + 6, 0);
  wire::store_be16(ip + 2, static_cast<uint16_t>(20 + udp_bytes));
  wire::store_be16(ip + 10, 0);
  uint32_t sum = 0;
  for (size_t at = 0; at < 20; at += 2) sum += wire::load_be16(ip + at);
  while (sum >> 16 != 0) sum = (sum & 0xFFFF) + (sum >> 16);
  wire::store_be16(ip + 10, static_cast<uint16_t>(~sum));
}

}  // namespace

bool Forger::follows(std::span<const uint8_t> frame) {
  if (per_million_ == 0 || frame.size() < kSluiceAt + wire::kHeaderBytes || frame[12] != 8 ||
      frame[13] != 0 || frame[23] != 17 || !random_.chance(per_million_)) {
    return false;
  }
  ++count_;
  frame_.assign(frame.begin(), frame.end());
  const auto type = static_cast<wire::Type>(frame_[kSluiceAt + 1]);
  if (type == wire::Type::kStatus && random_.chance(850'000)) {
    std::vector<uint8_t> payload(frame_.begin() + kSluiceAt + wire::kHeaderBytes, frame_.end());
    change_status(&payload);
    frame_.resize(kSluiceAt + wire::kHeaderBytes);
    frame_.insert(frame_.end(), payload.begin(), payload.end());
  } else if (type == wire::Type::kParity) {
    change_parity(&frame_);
  } else {
    change_header(frame_.data() + kSluiceAt);
  }
  make_right(&frame_, frame_.size() - kSluiceAt - wire::kHeaderBytes,
             wire::is_numbered_as_data(type) && protection_ == wire::Protection::kCrc ? std::optional(crc_)
                                                                                      : std::nullopt);
  return true;
}

// False, and sometimes only just.
uint64_t Forger::value_near(uint64_t true_value) {
  switch (random_.below(6)) {
    case 0:
      return 0;
    case 1:
      return UINT64_MAX;
    case 2:
      return random_.next();
    case 3:
      return true_value - random_.scale(1, 1'000'000);
    default:
      return true_value + random_.scale(1, 1'000'000);
  }
}

void Forger::change_header(uint8_t* header) {
  const auto type = static_cast<wire::Type>(header[1]);
  switch (random_.below(type == wire::Type::kData ? 5 : 4)) {
    case 0:
      return wire::store_be64(header + kAtTxSeq, value_near(wire::load_be64(header + kAtTxSeq)));
    case 1:
      return wire::store_be64(header + kAtSendTime, value_near(wire::load_be64(header + kAtSendTime)));
    case 2: {
      if (type == wire::Type::kStatus) return;  // which has none: a mere copy
      const uint64_t seen = value_near(wire::load_be32(header + kAtDoneSeen));
      return wire::store_be32(header + kAtDoneSeen, static_cast<uint32_t>(seen));
    }
    case 3: {
      if (type == wire::Type::kStatus) return;
      const uint64_t heard = value_near(wire::load_be32(header + kAtStatusesHeard));
      if (random_.flip()) return wire::store_be32(header + kAtStatusesHeard, static_cast<uint32_t>(heard));
      header[kAtCreditWanted] = static_cast<uint8_t>(heard);  // of the highest weight
      return;
    }
    default:  // no such file, and the number of a true datagram that is still to come
      wire::store_be32(header + kAtObject, 100'000);
      wire::store_be64(header + kAtTxSeq, wire::load_be64(header + kAtTxSeq) + random_.between(1, 8));
  }
}

void Forger::change_parity(std::vector<uint8_t>* frame) {
  uint8_t* const header = frame->data() + kSluiceAt;
  uint64_t tx_seq = wire::load_be64(header + kAtTxSeq);
  // Mostly a number of its own, since a receiver takes none twice.
  if (random_.chance(800'000)) tx_seq += random_.between(1, 8);
  switch (random_.below(6)) {
    case 0:
      tx_seq = value_near(tx_seq);
      break;
    case 1:
      wire::store_be64(header + kAtSendTime, value_near(wire::load_be64(header + kAtSendTime)));
      break;
    case 2:
      wire::store_be64(header + kAtBlockDigest, value_near(wire::load_be64(header + kAtBlockDigest)));
      break;
    case 3:
      header[kAtBlock] = static_cast<uint8_t>(value_near(header[kAtBlock]));
      break;
    case 4:
      wire::store_be16(header + kAtRepairId,
                       static_cast<uint16_t>(value_near(wire::load_be16(header + kAtRepairId))));
      break;
    default:
      (*frame)[frame->size() - 1 - random_.below(frame->size() - kSluiceAt - wire::kHeaderBytes)] ^=
          static_cast<uint8_t>(1U << random_.below(8));
  }
  wire::store_be64(header + kAtTxSeq, tx_seq);
}

void Forger::change_status(std::vector<uint8_t>* payload) {
  wire::Status s;
  if (!wire::decode_status(*payload, &s)) return;
  const auto changed = [this](auto* field) {
    *field = static_cast<std::remove_pointer_t<decltype(field)>>(value_near(static_cast<uint64_t>(*field)));
  };
  switch (random_.below(10)) {
    case 0:
      changed(&s.echo_send_time_ns);
      break;
    case 1:
      changed(&s.echo_hold_ns);
      break;
    case 2:
      changed(&s.received_end);
      break;
    case 3:
      changed(&s.credit_extents);
      break;
    case 4:
      changed(&s.bytes_received);
      changed(&s.delay_min_ns);
      changed(&s.delay_max_ns);
      s.delay_max_ns = std::max(s.delay_min_ns, s.delay_max_ns);
      break;
    case 5:
      changed(&s.done_end);
      break;
    case 6:  // what is still to come is done already, or other extents are
      if (s.run_count == 0 || random_.flip()) s.done_back = 0;
      s.run_count = static_cast<uint32_t>(random_.between(1, 40));
      for (uint32_t i = 0; i < s.run_count; ++i) {
        s.runs[i] = {.object = static_cast<uint32_t>(random_.below(4)),
                     .count = static_cast<uint32_t>(random_.between(1, 3)),
                     .first = random_.below(64)};
        s.done_end += s.runs[i].count;
        s.done_back += s.runs[i].count;
      }
      break;
    case 7:
      s.done_end -= s.done_back;
      s.done_back = s.run_count = 0;
      break;
    case 8:
      changed(&s.datagrams_received);
      changed(&s.no_room);
      changed(&s.crc_errors);
      changed(&s.advice_bps);
      // An extent of which nothing is missing; drawn from what is there, so that known worlds stay as they
      // are.
      s.holes_count = 1;
      s.holes[0] = {.told = wire::kChunksPerExtentMax, .number = s.received_end % 32, .run_count = 1};
      s.hole_runs[0] = {.first = wire::kChunksPerExtentMax - 1, .count = 1};
      break;
    default:
      s.gap_count = static_cast<uint32_t>(random_.between(1, 8));
      uint64_t end = random_.flip() ? s.received_end - std::min<uint64_t>(s.received_end, 100) : 0;
      for (uint32_t i = 0; i < s.gap_count; ++i) {
        s.gaps[i] = {end + random_.scale(0, 1000), random_.scale(1, 1'000'000)};
        end = s.gaps[i].first + s.gaps[i].count;
      }
  }
  payload->resize(wire::kStatusBytesMax);
  payload->resize(wire::encode_status(s, *payload).bytes);
}

}  // namespace sluice::sim
