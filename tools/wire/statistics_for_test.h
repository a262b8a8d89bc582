// Does a sample follow a law? Chi-squared for counts, Kolmogorov-Smirnov for values, each at a level of
// 0.001. Every test also asks about a law that is wrong by some percent: a sample that could not tell them
// apart proves nothing. Seeds are fixed, so answers do not change from run to run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <vector>

namespace sluice::emulator {

// Pearson's statistic against the 0.999 quantile (Wilson and Hilferty's approximation). Cells that expect
// fewer than 10 join the next ones. `bound`: how many of the cells follow from the others, one per group of
// cells whose sum is given.
inline bool fits_counts(const std::vector<double>& observed, const std::vector<double>& expected,
                        int bound = 1) {
  double statistic = 0;
  double cell_observed = 0;
  double cell_expected = 0;
  int cells = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    cell_observed += observed[i];
    cell_expected += expected[i];
    if (cell_expected < 10 && i + 1 < expected.size()) continue;
    const double difference = cell_observed - cell_expected;
    statistic += difference * difference / std::max(cell_expected, 1e-9);
    cell_observed = cell_expected = 0;
    ++cells;
  }
  const double freedom = std::max(1, cells - bound);
  const double root = 1 - 2 / (9 * freedom) + 3.0902 * std::sqrt(2 / (9 * freedom));
  return statistic < freedom * root * root * root;
}

// Greatest distance of the sample's distribution from `cdf`, against the asymptotic 0.999 quantile.
inline bool fits_law(std::vector<double> sample, const std::function<double(double)>& cdf) {
  std::ranges::sort(sample);
  const auto n = static_cast<double>(sample.size());
  double distance = 0;
  for (size_t i = 0; i < sample.size(); ++i) {
    const double wanted = cdf(sample[i]);
    distance =
        std::max({distance, wanted - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - wanted});
  }
  return distance < 1.9495 / std::sqrt(n);
}

}  // namespace sluice::emulator
