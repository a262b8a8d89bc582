// The keys of one direction of a flow, as they follow one another (docs/WIRE.md, "Seal").
//
// The numbers of a direction are divided into epochs of 2^23. Each epoch has a secret, made of the one before
// by a one-way function (HKDF-Expand of RFC 5869, with SHA-256; the way of RFC 9001, 6.1), and a key and an
// IV made of it. So rotation needs nobody's help, goes on while control is away, and what is held now does
// not open what was sent long ago.
//
// Three epochs are held: the current one, which is that of the newest number that was used or proved right,
// the one before, for what is late, and the one after, made ahead. Nothing is ever made because of a datagram
// that was not proved right. Of secrets only the newest is kept; those before it are wiped.
//
// Hot, except the constructor; moving on to the next epoch is cold. One thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "dataplane/seal/gcm.h"

namespace sluice::seal {

inline constexpr size_t kSecretBytes = 32;
using Secret = std::array<uint8_t, kSecretBytes>;

// HKDF-Expand (RFC 5869, 2.3) with SHA-256; at most 32 bytes.
void expand(const Secret& secret, std::string_view info, std::span<uint8_t> out);
void wipe(std::span<uint8_t> bytes);

struct EpochKey {
  explicit EpochKey(GcmEngine engine) : key(engine) {}
  GcmKey key;
  std::array<uint8_t, kIvBytes> iv{};
  uint64_t epoch = UINT64_MAX;
};

class KeyChain {
 public:
  // 2^23 datagrams of 32 KiB are 2^34 blocks; TLS 1.3 takes 2^34.5 with one key (RFC 8446, 5.5).
  static constexpr uint32_t kEpochBits = 23;

  // `secret`: of epoch 0. Tests take shorter epochs.
  KeyChain(Cipher cipher, const Secret& secret, uint32_t epoch_bits = kEpochBits,
           GcmEngine engine = best_gcm_engine());
  ~KeyChain();
  KeyChain(const KeyChain&) = delete;
  KeyChain& operator=(const KeyChain&) = delete;

  uint64_t epoch_of(uint64_t number) const { return number >> epoch_bits_; }
  // nullptr: this epoch is not held.
  const EpochKey* find(uint64_t epoch) const {
    const EpochKey& key = keys_[epoch % kHeld];
    return key.epoch == epoch ? &key : nullptr;
  }
  // A number of this epoch was used here, or came and was proved right.
  void reached(uint64_t epoch) {
    if (epoch == newest_) [[unlikely]]
      advance();
  }

 private:
  static constexpr uint32_t kHeld = 3;
  void make_key(uint64_t epoch);
  void advance();

  const Cipher cipher_;
  const uint32_t epoch_bits_;
  Secret secret_;        // of the newest epoch
  uint64_t newest_ = 0;  // the one after the current one
  std::array<EpochKey, kHeld> keys_;
};

}  // namespace sluice::seal
