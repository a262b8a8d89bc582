// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/cli/format.h"

namespace sluice::cli {
namespace {

constexpr size_t kLabelColumns = 13;

double length_s(const api::Session& session) {
  double seconds = 0;
  for (const api::RatePoint& point : session.history()) seconds += std::max(0.0, point.seconds());
  return seconds;
}

// The mean rate of each of so many parts of the time, all equally long.
std::vector<double> parts(const api::Session& session, size_t count) {
  const double part_s = length_s(session) / static_cast<double>(count);
  std::vector<double> rates(count, 0);
  double begin_s = 0;
  for (const api::RatePoint& point : session.history()) {
    const double end_s = begin_s + std::max(0.0, point.seconds());
    for (auto i = static_cast<size_t>(begin_s / part_s); i < count; ++i) {
      const double from_s = std::max(begin_s, static_cast<double>(i) * part_s);
      const double to_s = std::min(end_s, static_cast<double>(i + 1) * part_s);
      if (to_s <= from_s) break;
      rates[i] += point.rate_bps() * (to_s - from_s) / part_s;
    }
    begin_s = end_s;
  }
  return rates;
}

}  // namespace

std::vector<std::string> rate_chart(const api::Session& session, size_t columns, size_t rows) {
  std::vector<std::string> lines;
  if (columns < kChartColumnsMin || rows == 0 || !(length_s(session) > 0)) return lines;
  const size_t bars = columns - kLabelColumns;
  const std::vector<double> rates = parts(session, bars);
  const double most_bps = *std::max_element(rates.begin(), rates.end());
  if (!(most_bps > 0) || !std::isfinite(most_bps)) return lines;
  for (size_t row = 0; row < rows; ++row) {
    // A bar that is there at all has its lowest character.
    const double at = static_cast<double>(rows - row - 1) / static_cast<double>(rows);
    const double label_bps = most_bps * static_cast<double>(rows - row) / static_cast<double>(rows);
    std::string line = fmt::format("{:>11} |", format_rate(label_bps));
    for (const double rate : rates) line += rate > at * most_bps ? '#' : ' ';
    line.erase(line.find_last_not_of(' ') + 1);
    lines.push_back(std::move(line));
  }
  const std::string end = format_duration(length_s(session));
  lines.push_back(fmt::format("{:>11} +0:00{:>{}}", "", end, bars - 4));
  return lines;
}

}  // namespace sluice::cli
