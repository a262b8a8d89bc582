// SPDX-License-Identifier: Apache-2.0
#include "dataplane/seal/gcm.h"

#include <intel-ipsec-mb.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "dataplane/base/check.h"
#include "dataplane/seal/vaes.h"

namespace sluice::seal {
namespace {

// The functions for this CPU; they keep nothing between calls, so that all threads use one manager.
struct IpsecMb {
  IpsecMb() : manager(alloc_mb_mgr(0)) {
    if (manager == nullptr) return;
    init_mb_mgr_auto(manager, nullptr);
    constexpr uint64_t kNeeded = IMB_FEATURE_AESNI | IMB_FEATURE_PCLMULQDQ;
    usable = imb_get_errno(manager) == 0 && (manager->features & kNeeded) == kNeeded &&
             (manager->features & IMB_FEATURE_AESNI_EMU) == 0;
  }
  ~IpsecMb() {
    if (manager != nullptr) free_mb_mgr(manager);
  }
  IpsecMb(const IpsecMb&) = delete;
  IpsecMb& operator=(const IpsecMb&) = delete;

  IMB_MGR* const manager;
  bool usable = false;
};

const IpsecMb& ipsec_mb() {
  static const IpsecMb one;
  return one;
}

const gcm_key_data* key_of(const uint8_t* schedule) {
  return reinterpret_cast<const gcm_key_data*>(schedule);
}

const VaesKey& vaes_key_of(const uint8_t* schedule) { return *reinterpret_cast<const VaesKey*>(schedule); }

EVP_CIPHER_CTX* context(void* one) { return static_cast<EVP_CIPHER_CTX*>(one); }

}  // namespace

bool gcm_engine_runs(GcmEngine engine) {
  switch (engine) {
    case GcmEngine::kIpsecMb:
      return ipsec_mb().usable;
    case GcmEngine::kVaes:
      return vaes_runs_here();
    case GcmEngine::kOpenSsl:
      return true;
  }
  return false;
}

const char* gcm_engine_name(GcmEngine engine) {
  switch (engine) {
    case GcmEngine::kIpsecMb:
      return "ipsec-mb";
    case GcmEngine::kVaes:
      return "vaes";
    case GcmEngine::kOpenSsl:
      return "openssl";
  }
  return "";
}

GcmKey::GcmKey(GcmEngine engine) : engine_(engine) {
  static_assert(sizeof(gcm_key_data) <= kScheduleBytes && alignof(gcm_key_data) <= 64);
  static_assert(sizeof(VaesKey) <= kScheduleBytes && alignof(VaesKey) <= 64);
  if (engine_ != GcmEngine::kOpenSsl) return;
  sealing_ = EVP_CIPHER_CTX_new();
  opening_ = EVP_CIPHER_CTX_new();
  CHECK(sealing_ != nullptr && opening_ != nullptr, "there is memory for the contexts of a key");
}

GcmKey::~GcmKey() {
  OPENSSL_cleanse(schedule_.data(), schedule_.size());
  EVP_CIPHER_CTX_free(context(sealing_));
  EVP_CIPHER_CTX_free(context(opening_));
}

void GcmKey::set(Cipher cipher, std::span<const uint8_t> key) {
  CHECK(key.size() == key_bytes(cipher), "a key is as long as its cipher wants it");
  cipher_ = cipher;
  if (engine_ == GcmEngine::kIpsecMb) {
    auto* const schedule = reinterpret_cast<gcm_key_data*>(schedule_.data());
    if (cipher == Cipher::kAes128Gcm) {
      IMB_AES128_GCM_PRE(ipsec_mb().manager, key.data(), schedule);
    } else {
      IMB_AES256_GCM_PRE(ipsec_mb().manager, key.data(), schedule);
    }
    return;
  }
  if (engine_ == GcmEngine::kVaes) {
    return vaes_set(reinterpret_cast<VaesKey*>(schedule_.data()), cipher, key.data());
  }
  const EVP_CIPHER* const kind = cipher == Cipher::kAes128Gcm ? EVP_aes_128_gcm() : EVP_aes_256_gcm();
  const bool good = EVP_EncryptInit_ex(context(sealing_), kind, nullptr, key.data(), nullptr) == 1 &&
                    EVP_DecryptInit_ex(context(opening_), kind, nullptr, key.data(), nullptr) == 1;
  CHECK(good, "OpenSSL has AES-GCM");
}

void GcmKey::seal(const uint8_t* iv, std::span<const uint8_t> aad, std::span<const uint8_t> in, uint8_t* out,
                  uint8_t* tag) const {
  if (engine_ == GcmEngine::kIpsecMb) {
    gcm_context_data state;
    const IMB_MGR* const mb = ipsec_mb().manager;
    const auto call = cipher_ == Cipher::kAes128Gcm ? mb->gcm128_enc : mb->gcm256_enc;
    return call(key_of(schedule_.data()), &state, out, in.data(), in.size(), iv, aad.data(), aad.size(), tag,
                kTagBytes);
  }
  if (engine_ == GcmEngine::kVaes) {
    return vaes_seal(vaes_key_of(schedule_.data()), cipher_, iv, aad, in, out, tag);
  }
  EVP_CIPHER_CTX* const c = context(sealing_);
  int bytes = 0;
  const bool good =
      EVP_EncryptInit_ex(c, nullptr, nullptr, nullptr, iv) == 1 &&
      EVP_EncryptUpdate(c, nullptr, &bytes, aad.data(), static_cast<int>(aad.size())) == 1 &&
      (in.empty() || EVP_EncryptUpdate(c, out, &bytes, in.data(), static_cast<int>(in.size())) == 1) &&
      EVP_EncryptFinal_ex(c, tag, &bytes) == 1 &&
      EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG, kTagBytes, tag) == 1;
  CHECK(good, "AES-GCM seals whatever it is given");
}

bool GcmKey::open(const uint8_t* iv, std::span<const uint8_t> aad, std::span<const uint8_t> in, uint8_t* out,
                  const uint8_t* tag) const {
  if (engine_ == GcmEngine::kIpsecMb) {
    gcm_context_data state;
    uint8_t right[kTagBytes];
    const IMB_MGR* const mb = ipsec_mb().manager;
    const auto call = cipher_ == Cipher::kAes128Gcm ? mb->gcm128_dec : mb->gcm256_dec;
    call(key_of(schedule_.data()), &state, out, in.data(), in.size(), iv, aad.data(), aad.size(), right,
         kTagBytes);
    return CRYPTO_memcmp(right, tag, kTagBytes) == 0;
  }
  if (engine_ == GcmEngine::kVaes) {
    uint8_t right[kTagBytes];
    vaes_open(vaes_key_of(schedule_.data()), cipher_, iv, aad, in, out, right);
    return CRYPTO_memcmp(right, tag, kTagBytes) == 0;
  }
  EVP_CIPHER_CTX* const c = context(opening_);
  int bytes = 0;
  uint8_t none[kTagBytes];
  return EVP_DecryptInit_ex(c, nullptr, nullptr, nullptr, iv) == 1 &&
         EVP_DecryptUpdate(c, nullptr, &bytes, aad.data(), static_cast<int>(aad.size())) == 1 &&
         (in.empty() || EVP_DecryptUpdate(c, out, &bytes, in.data(), static_cast<int>(in.size())) == 1) &&
         EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_SET_TAG, kTagBytes, const_cast<uint8_t*>(tag)) == 1 &&
         EVP_DecryptFinal_ex(c, none, &bytes) == 1;
}

}  // namespace sluice::seal
