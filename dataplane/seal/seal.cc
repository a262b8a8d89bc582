// SPDX-License-Identifier: Apache-2.0
#include "dataplane/seal/seal.h"

namespace sluice::seal {

uint64_t FlowSeal::seal(const wire::Header& header, std::span<const uint8_t> payload,
                        std::span<uint8_t, wire::kHeaderBytes> header_out, uint8_t* payload_out) const {
  DCHECK(header.length == payload.size(), "a header tells the length of what follows it");
  const wire::CrcKind kind = kind_of(header.type);
  wire::encode(header, header_out);
  const uint64_t digest = payload_out != nullptr
                              ? crc::copy(kind, 0, payload.data(), payload_out, payload.size())
                              : crc::compute(kind, 0, payload.data(), payload.size());
  wire::store_be64(&header_out[wire::kHeaderCrcCoveredBytes],
                   crc::compute(kind, digest, header_out.data(), wire::kHeaderCrcCoveredBytes));
  return digest;
}

Opened FlowSeal::open(const wire::Header& header, std::span<const uint8_t> datagram,
                      uint8_t* empty_place) const {
  DCHECK(datagram.size() == wire::kHeaderBytes + header.length, "decode() holds the length to be right");
  const wire::CrcKind kind = kind_of(header.type);
  Opened opened;
  opened.payload_ = datagram.data() + wire::kHeaderBytes;
  opened.payload_bytes_ = header.length;
  const uint64_t digest = empty_place != nullptr
                              ? crc::copy_past_caches(kind, 0, opened.payload_, empty_place, header.length)
                              : crc::compute(kind, 0, opened.payload_, header.length);
  if (crc::compute(kind, digest, datagram.data(), wire::kHeaderCrcCoveredBytes) != header.crc) return opened;
  opened.good_ = true;
  opened.placed_ = empty_place != nullptr;
  opened.digest_ = digest;
  return opened;
}

}  // namespace sluice::seal
