// All keys of one flow: of data and probes one way, of statuses the other way (docs/WIRE.md, "Keys").
//
// Made of the flow's secret, which both ends know by their control connection. Lies in a SecretBox. One
// thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

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
           GcmEngine engine = best_gcm_engine());

  KeyChain& of(wire::Type type) { return type == wire::Type::kStatus ? statuses_ : data_; }

 private:
  KeyChain data_;      // source to destination
  KeyChain statuses_;  // destination to source
};

// For one datagram: its type and number, which no other one under the same key has.
std::array<uint8_t, kIvBytes> nonce_of(const EpochKey& key, wire::Type type, uint64_t number);

}  // namespace sluice::seal
