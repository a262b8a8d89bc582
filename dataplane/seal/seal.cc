// What is enciphered: the digest is of the plain bytes at both ends, and nothing of it is in the clear.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/seal/seal.h"

#include "dataplane/crc/variants.h"

namespace sluice::seal {

uint64_t FlowSeal::encipher(const wire::Header& header, std::span<const uint8_t> payload,
                            std::span<uint8_t, wire::kHeaderBytes> header_out, uint8_t* payload_out,
                            Store store) {
  DCHECK(payload.empty() || payload_out != nullptr, "the cipher is the copy");
  if (header.type == wire::Type::kEcho) {
    seal_echo(header, payload, header_out, payload_out);
    return 0;
  }
  KeyChain& chain = keys_->of(header.type);
  const uint64_t number = number_of(header);
  const uint64_t epoch = chain.epoch_of(number);
  chain.reached(epoch);
  const EpochKey* const key = chain.find(epoch);
  CHECK(key != nullptr, "numbers of what is sent go up one by one, and so do epochs");
  wire::Header numbered = header;
  numbered.key_epoch = static_cast<uint8_t>(epoch);
  wire::encode(numbered, header_out);
  const uint64_t digest =
      header.type == wire::Type::kData ? crc::compute(data_kind_, 0, payload.data(), payload.size()) : 0;
  const auto nonce = nonce_of(*key, number);
  // The cipher only knows ordinary stores, so that what it writes goes on from the scratch.
  const bool past_caches = store == Store::kPastCaches && !payload.empty();
  key->key.seal(nonce.data(), header_out.first<wire::kHeaderCoveredBytes>(), payload,
                past_caches ? scratch_->sealed.data() : payload_out, &header_out[wire::kHeaderCoveredBytes]);
  if (past_caches) {
    crc::stream(scratch_->sealed.data(), payload_out, payload.size());
    crc::publish_copies();
  }
  return digest;
}

Opened FlowSeal::decipher(const wire::Header& header, std::span<const uint8_t> datagram,
                          uint8_t* empty_place) {
  if (header.type == wire::Type::kEcho) return open_echo(header, datagram);
  Opened opened;
  KeyChain& chain = keys_->of(header.type);
  const uint64_t number = number_of(header);
  const uint64_t epoch = chain.epoch_of(number);
  const EpochKey* const key = chain.find(epoch);
  if (key == nullptr || header.key_epoch != static_cast<uint8_t>(epoch)) {
    opened.outcome_ = Outcome::kBadEpoch;
    return opened;
  }
  if (header.length > scratch_->bytes.size()) return opened;
  uint8_t* const out = empty_place != nullptr ? empty_place : scratch_->bytes.data();
  const auto nonce = nonce_of(*key, number);
  if (!key->key.open(nonce.data(), datagram.first(wire::kHeaderCoveredBytes),
                     datagram.subspan(wire::kHeaderBytes), out, &datagram[wire::kHeaderCoveredBytes])) {
    return opened;
  }
  chain.reached(epoch);
  opened.outcome_ = Outcome::kGood;
  opened.placed_ = empty_place != nullptr;
  opened.payload_ = out;
  opened.payload_bytes_ = header.length;
  opened.digest_ = header.type == wire::Type::kData ? crc::compute(data_kind_, 0, out, header.length) : 0;
  return opened;
}

void FlowSeal::seal_echo(const wire::Header& header, std::span<const uint8_t> payload,
                         std::span<uint8_t, wire::kHeaderBytes> header_out, uint8_t* payload_out) {
  KeyChain* const chain = keys_->of_echoes(header.flags == wire::kFlagReflected);
  CHECK(chain != nullptr, "only a flow with echoes sends any");
  const uint64_t epoch = chain->epoch_of(header.tx_seq);
  chain->reached(epoch);
  const EpochKey* const key = chain->find(epoch);
  CHECK(key != nullptr, "numbers of echoes are few");
  wire::Header numbered = header;
  numbered.key_epoch = static_cast<uint8_t>(epoch);
  wire::encode(numbered, header_out);
  if (!payload.empty()) std::memcpy(payload_out, payload.data(), payload.size());
  const auto nonce = nonce_of(*key, header.tx_seq);
  key->key.seal(nonce.data(), header_out.first<wire::kHeaderCoveredBytes>(), {}, nullptr,
                &header_out[wire::kHeaderCoveredBytes]);
}

Opened FlowSeal::open_echo(const wire::Header& header, std::span<const uint8_t> datagram) {
  Opened opened;
  KeyChain* const chain = keys_->of_echoes(header.flags == wire::kFlagReflected);
  const uint64_t epoch = chain != nullptr ? chain->epoch_of(header.tx_seq) : 0;
  const EpochKey* const key = chain != nullptr ? chain->find(epoch) : nullptr;
  if (key == nullptr || header.key_epoch != static_cast<uint8_t>(epoch)) {
    opened.outcome_ = Outcome::kBadEpoch;
    return opened;
  }
  const auto nonce = nonce_of(*key, header.tx_seq);
  if (!key->key.open(nonce.data(), datagram.first(wire::kHeaderCoveredBytes), {}, nullptr,
                     &datagram[wire::kHeaderCoveredBytes])) {
    return opened;
  }
  chain->reached(epoch);
  opened.outcome_ = Outcome::kGood;
  opened.payload_ = datagram.data() + wire::kHeaderBytes;
  opened.payload_bytes_ = header.length;
  return opened;
}

}  // namespace sluice::seal
