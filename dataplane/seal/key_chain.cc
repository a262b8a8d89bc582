// SPDX-License-Identifier: Apache-2.0
#include "dataplane/seal/key_chain.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <vector>

#include "dataplane/base/check.h"
#include "dataplane/core/hot.h"

namespace sluice::seal {

void wipe(std::span<uint8_t> bytes) { OPENSSL_cleanse(bytes.data(), bytes.size()); }

// So few bytes are one block: T(1) = HMAC(secret, info | 0x01).
void expand(const Secret& secret, std::string_view info, std::span<uint8_t> out) {
  std::vector<uint8_t> message(info.begin(), info.end());
  message.push_back(1);
  Secret block;
  CHECK(out.size() <= block.size(), "one block is enough");
  const void* const made = HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()), message.data(),
                                message.size(), block.data(), nullptr);
  CHECK(made != nullptr, "OpenSSL has HMAC and SHA-256");
  std::copy_n(block.begin(), out.size(), out.begin());
  wipe(block);
}

KeyChain::KeyChain(Cipher cipher, const Secret& secret, uint32_t epoch_bits, GcmEngine engine)
    : cipher_(cipher),
      epoch_bits_(epoch_bits),
      secret_(secret),
      keys_{EpochKey(engine), EpochKey(engine), EpochKey(engine)} {
  make_key(0);
  advance();
}

KeyChain::~KeyChain() {
  wipe(secret_);
  for (EpochKey& each : keys_) wipe(each.iv);
}

void KeyChain::make_key(uint64_t epoch) {
  EpochKey& made = keys_[epoch % kHeld];
  std::array<uint8_t, 32> key;
  const std::span<uint8_t> wanted(key.data(), key_bytes(cipher_));
  expand(secret_, "sluice key", wanted);
  made.key.set(cipher_, wanted);
  wipe(key);
  expand(secret_, "sluice iv", made.iv);
  made.epoch = epoch;
}

void KeyChain::advance() {
  const ColdScope cold;
  Secret next;
  expand(secret_, "sluice next", next);
  secret_ = next;
  wipe(next);
  make_key(++newest_);
}

}  // namespace sluice::seal
