// SPDX-License-Identifier: Apache-2.0
#include "dataplane/seal/gcm_choice.h"

#include <algorithm>
#include <chrono>
#include <memory>

namespace sluice::seal {
namespace {

constexpr int kTurns = 12;
constexpr int kCalls = 4;  // a turn
constexpr size_t kMeasuredBytes = 8192;

class Measured {
 public:
  explicit Measured(GcmEngine engine) : key_(engine) {
    constexpr std::array<uint8_t, key_bytes(Cipher::kAes128Gcm)> kKey = {1, 2, 3};
    key_.set(Cipher::kAes128Gcm, kKey);
  }
  void turn() {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i) key_.seal(iv_.data(), aad_, in_, out_.data(), tag_.data());
    const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - begin;
    best_ns_ = std::min(best_ns_, static_cast<uint64_t>(took.count()) / kCalls);
  }
  uint64_t best_ns() const { return best_ns_; }

 private:
  GcmKey key_;
  uint64_t best_ns_ = UINT64_MAX;
  std::array<uint8_t, kIvBytes> iv_{};
  std::array<uint8_t, kTagBytes> tag_{};
  std::array<uint8_t, 56> aad_{};
  alignas(64) std::array<uint8_t, kMeasuredBytes> in_{};
  alignas(64) std::array<uint8_t, kMeasuredBytes> out_{};
};

GcmTimes measured() {
  const auto ipsec_mb = std::make_unique<Measured>(GcmEngine::kIpsecMb);
  const auto vaes = std::make_unique<Measured>(GcmEngine::kVaes);
  for (int i = 0; i < kTurns; ++i) {
    ipsec_mb->turn();
    vaes->turn();
  }
  return {.ipsec_mb_ns = ipsec_mb->best_ns(), .vaes_ns = vaes->best_ns()};
}

GcmChoice made() {
  const bool ipsec_mb = gcm_engine_runs(GcmEngine::kIpsecMb);
  const bool vaes = gcm_engine_runs(GcmEngine::kVaes);
  const GcmTimes times = ipsec_mb && vaes ? measured() : GcmTimes();
  return {.engine = quickest(ipsec_mb, vaes, times), .times = times};
}

}  // namespace

GcmEngine quickest(bool ipsec_mb_runs, bool vaes_runs, const GcmTimes& times) {
  if (!ipsec_mb_runs) return vaes_runs ? GcmEngine::kVaes : GcmEngine::kOpenSsl;
  return vaes_runs && 10 * times.vaes_ns < 9 * times.ipsec_mb_ns ? GcmEngine::kVaes : GcmEngine::kIpsecMb;
}

const GcmChoice& gcm_choice() {
  static const GcmChoice one = made();
  return one;
}

GcmEngine best_gcm_engine() { return gcm_choice().engine; }

}  // namespace sluice::seal
