// How fast a session went over its time, in few points: when there are too many, two become one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "control/verdict/verdict.h"

namespace sluice::verdict {

struct Point {
  uint64_t length_ns = 0;
  uint64_t bytes = 0;
  Cause cause = Cause::kNone;  // what held it meanwhile
};

class History {
 public:
  static constexpr size_t kPointsMax = 240;

  void add(const Point& point);
  const std::vector<Point>& points() const { return points_; }
  // From a record: no more than there may be.
  void restore(const std::vector<Point>& points);

 private:
  void halve();

  std::vector<Point> points_;
  uint64_t step_ns_ = 0;  // what is shorter is joined by what comes next
};

}  // namespace sluice::verdict
