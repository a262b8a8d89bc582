// All keys of one flow: of data and of probes one way, of statuses the other way (docs/WIRE.md, "Seal"). A
// flow with echoes has keys of these for both ways.
//
// Each type counts for itself, and so has keys of its own: data that are not enciphered, or many of them
// without a probe, move nothing on but their own.
//
// Made of the flow's secret, which both ends know by their control connection. Lies in a SecretBox. One
// thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "dataplane/core/wire.h"
#include "dataplane/seal/key_chain.h"

namespace sluice::seal {

// Statuses and probes have this cipher where data have none.
constexpr Cipher cipher_of(wire::Protection protection) {
  return protection == wire::Protection::kAes256Gcm ? Cipher::kAes256Gcm : Cipher::kAes128Gcm;
}

class FlowKeys {
 public:
  FlowKeys(wire::Protection protection, const Secret& flow_secret, uint32_t epoch_bits = KeyChain::kEpochBits,
           GcmEngine engine = best_gcm_engine(), bool echoes = false);

  KeyChain& of(wire::Type type) {
    if (wire::is_numbered_as_data(type)) return data_;
    return type == wire::Type::kProbe ? probes_ : statuses_;
  }
  // nullptr: the flow has none.
  KeyChain* of_echoes(bool reflected) {
    std::optional<KeyChain>& chain = reflected ? echoes_back_ : echoes_;
    return chain ? &*chain : nullptr;
  }

 private:
  KeyChain data_;                        // and parity, source to destination
  KeyChain probes_;                      // the same way
  KeyChain statuses_;                    // destination to source
  std::optional<KeyChain> echoes_;       // source to destination
  std::optional<KeyChain> echoes_back_;  // and back
};

// By which its keys and nonce are chosen: no two datagrams of a flow and type have the same.
inline uint64_t number_of(const wire::Header& header) {
  return header.type == wire::Type::kProbe ? header.offset : header.tx_seq;
}

// For one datagram. The way of RFC 8446, 5.3.
std::array<uint8_t, kIvBytes> nonce_of(const EpochKey& key, uint64_t number);

}  // namespace sluice::seal
