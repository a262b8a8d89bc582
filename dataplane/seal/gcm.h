// AES-GCM (NIST SP 800-38D) of whole chunks, from one place in memory to another: the cipher is the copy.
//
// By one of three engines, which all give the same bytes: libipsec-mb's single-shot calls, code of ours for
// VAES on 256 bits (vaes.h), or OpenSSL where the CPU has no AES. The quickest is found by a measurement
// (gcm_choice.h).
//
// Hot, except set(), and pure; a key is used by one thread at a time. Its memory is wiped when it goes, and
// ought to lie in SecretBox (secret_box.h); what OpenSSL keeps lies in its own memory, which it wipes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::seal {

enum class Cipher : uint8_t { kAes128Gcm, kAes256Gcm };
constexpr size_t key_bytes(Cipher cipher) { return cipher == Cipher::kAes128Gcm ? 16 : 32; }
inline constexpr size_t kIvBytes = 12;
inline constexpr size_t kTagBytes = 16;

enum class GcmEngine : uint8_t { kIpsecMb, kVaes, kOpenSsl };
inline constexpr std::array kGcmEngines = {GcmEngine::kIpsecMb, GcmEngine::kVaes, GcmEngine::kOpenSsl};
bool gcm_engine_runs(GcmEngine engine);         // on this CPU
const char* gcm_engine_name(GcmEngine engine);  // "ipsec-mb", "vaes", "openssl"
GcmEngine best_gcm_engine();                    // gcm_choice.h

class GcmKey {
 public:
  explicit GcmKey(GcmEngine engine = best_gcm_engine());
  ~GcmKey();
  GcmKey(const GcmKey&) = delete;
  GcmKey& operator=(const GcmKey&) = delete;

  // Cold. `key` has key_bytes(cipher).
  void set(Cipher cipher, std::span<const uint8_t> key);
  // `in` and `out` are the same, or do not overlap. An IV must never be used twice with one key.
  void seal(const uint8_t* iv, std::span<const uint8_t> aad, std::span<const uint8_t> in, uint8_t* out,
            uint8_t* tag) const;
  // False: the tag is another one. `out` then holds what nobody may read.
  bool open(const uint8_t* iv, std::span<const uint8_t> aad, std::span<const uint8_t> in, uint8_t* out,
            const uint8_t* tag) const;

 private:
  // The expanded key: libipsec-mb's, whose header is too large to be included by all, or a VaesKey.
  static constexpr size_t kScheduleBytes = 1024;
  alignas(64) std::array<uint8_t, kScheduleBytes> schedule_{};
  void* sealing_ = nullptr;  // EVP_CIPHER_CTX, of OpenSSL
  void* opening_ = nullptr;
  Cipher cipher_ = Cipher::kAes128Gcm;
  GcmEngine engine_;
};

}  // namespace sluice::seal
