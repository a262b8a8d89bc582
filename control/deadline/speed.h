// How fast something has been of late, and what follows from that for a deadline.
//
// Pure. The bytes that arrive in the seconds to come are a sum of such samples as were taken: their mean is
// that of the samples, and their variance has two parts, that of the coming samples and that of what we do
// not know of the mean (the prediction interval of a future mean: G. J. Hahn, W. Q. Meeker, "Statistical
// Intervals"). With n seconds to come and m independent samples of deviation s it is s^2 n (1 + n / m), with
// Student's t of m - 1 degrees of freedom. Samples that resemble the ones before them (a path that is slow
// for a while) count as fewer: m (1 - r) / (1 + r), where r is how much neighbours resemble each other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace sluice::deadline {

// What holds a session where it is.
enum class Limit : uint8_t {
  kCap,              // --rate, [port] rate, session limit, and what the peer allows
  kPath,             // the network
  kSourceDisk,       // reading
  kDestinationDisk,  // writing
  kQueue,            // sessions that run, or come first
};

// What a second brought, each taken for one sample.
struct Speed {
  double mean_bps = 0;
  double deviation_bps = 0;
  double samples = 0;     // that are worth so many independent ones
  double stretch = 1;     // the variance of a sum is so much more than that of independent samples
  bool at_least = false;  // a cap held it there: it may be faster
  Limit limit = Limit::kPath;
};

// What held most of the samples where they were.
Limit most_of(std::span<const Limit> limits);

inline constexpr size_t kSamplesMin = 3;  // fewer say nothing of how it varies

// Of samples in the order in which they were taken; nothing when they are too few.
std::optional<Speed> speed_of(std::span<const double> samples_bps);

// That so many bits have come after so many seconds: 0 to 1.
double chance(const Speed& speed, double bits, double seconds);
// The least number of seconds with that chance; nothing when no time is long enough to say so.
std::optional<double> seconds_for(const Speed& speed, double bits, double wanted_chance);

}  // namespace sluice::deadline
