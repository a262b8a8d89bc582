// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tools/cli/format.h"

namespace sluice::cli {
namespace {

constexpr size_t kLabelColumns = 13;
constexpr char kRate = '#';
constexpr char kLimit = '-';
constexpr char kBeneath = 'v';  // less than the scale shows

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

// What the lowest and the highest row stand for.
struct Scale {
  double low_bps = 0;
  double high_bps = 0;
  // A row holds what is no more than its label; noise of arithmetic lifts nothing into the next one.
  size_t row_of(double rate_bps, size_t rows) const {
    constexpr double kNoise = 1e-6;
    const double at = (rate_bps - low_bps) / (high_bps - low_bps) * static_cast<double>(rows);
    return static_cast<size_t>(std::clamp(std::ceil(at - kNoise) - 1, 0.0, static_cast<double>(rows - 1)));
  }
};

// Around what changes. How a session begins, and a moment in which it stood, are not what a steady one is
// judged by: they lie beneath the lowest row then.
Scale scale_of(std::vector<double> rates, double limit_bps) {
  constexpr double kFew = 0.1;        // of the columns: they do not set the scale
  constexpr double kSteady = 0.5;     // of the highest: what changes by less is drawn from above zero
  constexpr double kSpanMin = 0.2;    // of the highest: smaller changes are no news
  constexpr double kLimitNear = 1.5;  // times the highest: farther away it would press all else together
  const auto few = static_cast<ptrdiff_t>(kFew * static_cast<double>(rates.size()));
  const double most_bps = *std::max_element(rates.begin(), rates.end());
  std::nth_element(rates.begin(), rates.begin() + few, rates.end());
  const double least_bps = rates[static_cast<size_t>(few)];
  Scale scale{.low_bps = 0, .high_bps = most_bps};
  if (least_bps > kSteady * most_bps) {
    const double around_bps = (most_bps + least_bps) / 2;
    const double half_bps = std::max(most_bps - least_bps, kSpanMin * most_bps) / 2;
    scale = {.low_bps = around_bps - half_bps, .high_bps = around_bps + half_bps};
  }
  if (limit_bps > scale.high_bps && limit_bps <= kLimitNear * most_bps) scale.high_bps = limit_bps;
  return scale;
}

// Rows of characters, the lowest first.
using Drawing = std::vector<std::string>;

Drawing drawing(const std::vector<double>& rates, const Scale& scale, double limit_bps, size_t rows) {
  Drawing drawn(rows, std::string(rates.size(), ' '));
  if (limit_bps > scale.low_bps && limit_bps <= scale.high_bps)
    drawn[scale.row_of(limit_bps, rows)].assign(rates.size(), kLimit);
  size_t before = scale.row_of(rates[0], rows);
  for (size_t i = 0; i < rates.size(); ++i) {
    // From beside where the column before it ends, so that a jump is a line.
    const size_t now = scale.row_of(rates[i], rows);
    for (size_t row = before; row != now; row = row < now ? row + 1 : row - 1) {
      if (row != before) drawn[row][i] = kRate;
    }
    drawn[now][i] = rates[i] < scale.low_bps ? kBeneath : kRate;
    before = now;
  }
  return drawn;
}

std::string legend(const Drawing& drawn) {
  const auto has = [&drawn](char mark) {
    return std::any_of(drawn.begin(), drawn.end(),
                       [mark](const std::string& row) { return row.find(mark) != std::string::npos; });
  };
  std::string text;
  if (has(kLimit)) text += "- limit";
  if (has(kBeneath)) text += std::string(text.empty() ? "" : "  ") + "v below";
  return text;
}

}  // namespace

std::vector<std::string> rate_chart(const api::Session& session, size_t columns, size_t rows) {
  std::vector<std::string> lines;
  if (columns < kChartColumnsMin || rows == 0 || !(length_s(session) > 0)) return lines;
  const size_t count = columns - kLabelColumns;
  const std::vector<double> rates = parts(session, count);
  const double most_bps = *std::max_element(rates.begin(), rates.end());
  if (!(most_bps > 0) || !std::isfinite(most_bps)) return lines;
  const auto limit_bps = static_cast<double>(session.rate_limit_bps());
  const Scale scale = scale_of(rates, limit_bps);
  const Drawing drawn = drawing(rates, scale, limit_bps, rows);
  for (size_t row = rows; row-- > 0;) {
    const double at = (static_cast<double>(row) + 1) / static_cast<double>(rows);
    const double label_bps = scale.low_bps + at * (scale.high_bps - scale.low_bps);
    std::string line = fmt::format("{:>11} |{}", format_rate(label_bps), drawn[row]);
    line.erase(line.find_last_not_of(' ') + 1);
    lines.push_back(std::move(line));
  }
  const std::string end = format_duration(length_s(session));
  const size_t between = count - std::min(count, 4 + end.size());
  lines.push_back(fmt::format("{:>11} +0:00{:^{}}{}", "", legend(drawn), between, end));
  return lines;
}

}  // namespace sluice::cli
