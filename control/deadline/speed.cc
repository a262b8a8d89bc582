// SPDX-License-Identifier: Apache-2.0
#include "control/deadline/speed.h"

#include <algorithm>
#include <cmath>

namespace sluice::deadline {
namespace {

constexpr size_t kResemblanceMin = 8;    // samples from which it can be told
constexpr double kResemblanceMax = 0.9;  // a minute's samples cannot tell more apart
// Nobody knows a mean better than that, however even its samples were: what comes may be otherwise.
constexpr double kDoubtOfMean = 0.01;
constexpr double kYearsS = 20 * 365.0 * 86400;

double normal(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

// Student's t by a normal one: M. Abramowitz, I. A. Stegun, "Handbook of Mathematical Functions", 26.7.8.
double student(double t, double freedom) {
  return normal(t * (1 - 1 / (4 * freedom)) / std::sqrt(1 + t * t / (2 * freedom)));
}

// Correlation of each sample with the one before it.
double resemblance(std::span<const double> samples, double mean, double squares) {
  if (samples.size() < kResemblanceMin || squares <= 0) return 0;
  double sum = 0;
  for (size_t i = 1; i < samples.size(); ++i) sum += (samples[i] - mean) * (samples[i - 1] - mean);
  return std::clamp(sum / squares, 0.0, kResemblanceMax);
}

}  // namespace

Limit most_of(std::span<const Limit> limits) {
  Limit most = Limit::kPath;
  const auto count = [&](Limit limit) { return std::count(limits.begin(), limits.end(), limit); };
  for (const Limit each : {Limit::kSourceDisk, Limit::kDestinationDisk, Limit::kCap}) {
    if (count(each) > count(most)) most = each;
  }
  return most;
}

std::optional<Speed> speed_of(std::span<const double> samples_bps) {
  if (samples_bps.size() < kSamplesMin) return std::nullopt;
  const auto count = static_cast<double>(samples_bps.size());
  double sum = 0;
  for (const double each : samples_bps) sum += each;
  const double mean = sum / count;
  double squares = 0;
  for (const double each : samples_bps) squares += (each - mean) * (each - mean);
  const double resembles = resemblance(samples_bps, mean, squares);
  const double stretch = (1 + resembles) / (1 - resembles);
  return Speed{.mean_bps = mean,
               .deviation_bps = std::sqrt(squares / (count - 1)),
               .samples = std::max(2.0, count / stretch),
               .stretch = stretch};
}

double chance(const Speed& speed, double bits, double seconds) {
  if (bits <= 0) return seconds >= 0 ? 1 : 0;
  if (seconds <= 0) return 0;
  const double more = speed.mean_bps * seconds - bits;
  const double varies = speed.deviation_bps * speed.deviation_bps *
                        (seconds * speed.stretch + seconds * seconds / speed.samples);
  const double doubt = kDoubtOfMean * speed.mean_bps * seconds;
  const double deviation = std::sqrt(varies + doubt * doubt);
  if (deviation <= 0) return more >= 0 ? 1 : 0;
  return student(more / deviation, std::max(1.0, speed.samples - 1));
}

std::optional<double> seconds_for(const Speed& speed, double bits, double wanted_chance) {
  if (bits <= 0) return 0;
  if (chance(speed, bits, kYearsS) < wanted_chance) return std::nullopt;
  double low = 0;
  double high = kYearsS;
  for (int i = 0; i < 100 && high - low > 1e-3; ++i) {
    const double middle = (low + high) / 2;
    (chance(speed, bits, middle) < wanted_chance ? low : high) = middle;
  }
  return high;
}

}  // namespace sluice::deadline
