// SPDX-License-Identifier: Apache-2.0
#include "control/rate/loss_law.h"

#include <algorithm>
#include <cmath>

#include "dataplane/core/wire.h"

namespace sluice::rate {
namespace {

constexpr double kLeast = 1e-9;  // no chance is taken to be nothing
// Twice the logarithm of the likelihood grows by that much by chance alone in one of 1000 cases: less is no
// law.
constexpr double kSignificant = 10.8;
constexpr double kPerByteMin = 1e-6;  // an L0 of a million bytes
constexpr double kPerByteMax = 1e-1;
constexpr int kRounds = 60;
// So many should have come, and none did.
constexpr double kCut = 8;

double log_likelihood(std::span<const SizeSample> samples, const LossLaw& law) {
  double sum = 0;
  for (const SizeSample& each : samples) {
    const auto arrived = static_cast<double>(std::min(each.arrived, each.sent));
    const double log_arrives = std::log(law.kept) - law.per_byte * (each.chunk_bytes + law.overhead_bytes);
    const double lost = std::max(kLeast, 1 - std::exp(log_arrives));
    sum += arrived * log_arrives + (static_cast<double>(each.sent) - arrived) * std::log(lost);
  }
  return sum;
}

// The place of the maximum of a function with one hill.
template <typename Function>
double summit(double low, double high, Function height) {
  for (int i = 0; i < kRounds; ++i) {
    const double a = low + (high - low) / 3;
    const double b = high - (high - low) / 3;
    (height(a) < height(b) ? low : high) = height(a) < height(b) ? a : b;
  }
  return (low + high) / 2;
}

// The best share that is kept, for a given loss by length.
LossLaw with_best_kept(std::span<const SizeSample> samples, LossLaw law) {
  law.kept = summit(kLeast, 1.0, [&](double kept) {
    LossLaw tried = law;
    tried.kept = kept;
    return log_likelihood(samples, tried);
  });
  return law;
}

double goodput_of(const LossLaw& law, uint32_t chunk_bytes, uint32_t overhead_bytes) {
  return law.arrives(chunk_bytes) * chunk_bytes / (chunk_bytes + overhead_bytes);
}

uint32_t best_of(const LossLaw& law, uint32_t most, uint32_t overhead_bytes) {
  uint32_t best = most;
  for (uint32_t bytes = wire::kChunkBytesMin; bytes < most; bytes += wire::kChunkBytesStep) {
    if (goodput_of(law, bytes, overhead_bytes) > goodput_of(law, best, overhead_bytes)) best = bytes;
  }
  return best;
}

}  // namespace

double LossLaw::arrives(uint32_t chunk_bytes) const {
  return kept * std::exp(-per_byte * (chunk_bytes + overhead_bytes));
}

LossLaw fit_loss(std::span<const SizeSample> samples, uint32_t overhead_bytes) {
  LossLaw even{.overhead_bytes = static_cast<double>(overhead_bytes)};
  even = with_best_kept(samples, even);
  const auto law_at = [&](double log_per_byte) {
    LossLaw law = even;
    law.per_byte = std::exp(log_per_byte);
    return with_best_kept(samples, law);
  };
  const double best = summit(std::log(kPerByteMin), std::log(kPerByteMax),
                             [&](double at) { return log_likelihood(samples, law_at(at)); });
  const LossLaw law = law_at(best);
  const double more = 2 * (log_likelihood(samples, law) - log_likelihood(samples, even));
  return more > kSignificant ? law : even;
}

SizeCurve curve_of(std::span<const SizeSample> samples, uint32_t overhead_bytes, uint32_t wire_bytes) {
  SizeCurve curve;
  if (samples.empty()) return curve;
  // Behind the longest that came a link may carry nothing more: such sizes say nothing of loss.
  size_t known = samples.size();
  while (known > 1 && samples[known - 1].arrived == 0) --known;
  curve.law = fit_loss(samples.first(known), overhead_bytes);
  if (known < samples.size()) {
    const SizeSample& next = samples[known];
    curve.cut = curve.law.arrives(next.chunk_bytes) * static_cast<double>(next.sent) >= kCut;
  }
  const uint32_t all_overhead = overhead_bytes + wire_bytes;
  for (const SizeSample& each : samples) {
    const double arrives = curve.law.arrives(each.chunk_bytes);
    curve.points.push_back({.sample = each,
                            .arrives = arrives,
                            .goodput = goodput_of(curve.law, each.chunk_bytes, all_overhead),
                            .payload_bytes = each.chunk_bytes * arrives});
  }
  const uint32_t longest = samples.back().chunk_bytes;
  curve.best_chunk_bytes = best_of(curve.law, longest, all_overhead);
  curve.gain = goodput_of(curve.law, curve.best_chunk_bytes, all_overhead) /
               std::max(kLeast, goodput_of(curve.law, longest, all_overhead));
  return curve;
}

}  // namespace sluice::rate
