// SPDX-License-Identifier: Apache-2.0
#include "control/verdict/history.h"

#include <algorithm>

namespace sluice::verdict {
namespace {

Point joined(const Point& first, const Point& second) {
  return {.length_ns = first.length_ns + second.length_ns,
          .bytes = first.bytes + second.bytes,
          .cause = first.length_ns > second.length_ns ? first.cause : second.cause};
}

}  // namespace

void History::add(const Point& point) {
  if (point.length_ns == 0) return;
  if (!points_.empty() && points_.back().length_ns < step_ns_) {
    points_.back() = joined(points_.back(), point);
    return;
  }
  if (points_.size() == kPointsMax) halve();
  points_.push_back(point);
}

void History::halve() {
  std::vector<Point> fewer;
  for (size_t i = 0; i + 1 < points_.size(); i += 2) fewer.push_back(joined(points_[i], points_[i + 1]));
  points_ = std::move(fewer);
  uint64_t total_ns = 0;
  for (const Point& point : points_) total_ns += point.length_ns;
  // A little less than they have, so that one that is nearly as long is not doubled.
  step_ns_ = total_ns / points_.size() * 3 / 4;
}

void History::restore(const std::vector<Point>& points) {
  points_.clear();
  step_ns_ = 0;
  for (const Point& point : points) add(point);
}

}  // namespace sluice::verdict
