// SPDX-License-Identifier: Apache-2.0
#include "dataplane/seal/flow_keys.h"

namespace sluice::seal {
namespace {

struct Expanded {
  Expanded(const Secret& from, std::string_view info) { expand(from, info, secret); }
  ~Expanded() { wipe(secret); }
  Expanded(const Expanded&) = delete;
  Expanded& operator=(const Expanded&) = delete;
  Secret secret;
};

}  // namespace

FlowKeys::FlowKeys(wire::Protection protection, const Secret& flow_secret, uint32_t epoch_bits,
                   GcmEngine engine, bool echoes)
    : data_(cipher_of(protection), Expanded(flow_secret, "sluice data s2d").secret, epoch_bits, engine),
      probes_(cipher_of(protection), Expanded(flow_secret, "sluice probe s2d").secret, epoch_bits, engine),
      statuses_(cipher_of(protection), Expanded(flow_secret, "sluice status d2s").secret, epoch_bits,
                engine) {
  if (!echoes) return;
  echoes_.emplace(cipher_of(protection), Expanded(flow_secret, "sluice echo s2d").secret, epoch_bits, engine);
  echoes_back_.emplace(cipher_of(protection), Expanded(flow_secret, "sluice echo d2s").secret, epoch_bits,
                       engine);
}

std::array<uint8_t, kIvBytes> nonce_of(const EpochKey& key, uint64_t number) {
  std::array<uint8_t, kIvBytes> nonce = key.iv;
  wire::store_be64(nonce.data() + 4, wire::load_be64(key.iv.data() + 4) ^ number);
  return nonce;
}

}  // namespace sluice::seal
