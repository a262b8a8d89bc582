// The metrics of a node, made of what was found of it.
//
// Pure. A family has the name, type and help of its row in the table (control/metrics/table.h);
// families without a sample are left out. How many samples there can be is bounded by the board's
// workers and flows, by the exports, and by the sessions that have a label (kSamplesMax).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "control/metrics/figures.h"
#include "control/metrics/labelled.h"
#include "control/metrics/table.h"

namespace sluice::metrics {

// Sessions that have a label of their own, at most.
inline constexpr size_t kLabelledMax = 32;
// Ends of certificates that are told of, at most; the earliest.
inline constexpr size_t kExpiriesMax = 256;
// All samples of a scrape of the fullest node: 16 workers, 128 lanes, 64 exports.
inline constexpr size_t kSamplesMax = 5800;

struct Sample {
  std::vector<std::string> labels;  // values, in the order of the row's names
  double value = 0;
};

struct Family {
  const MetricInfo* info = nullptr;
  std::vector<Sample> samples;
};

struct Sources {
  const NodeFigures* node = nullptr;  // nothing: control's loop has not answered yet
  const Labelled* labelled = nullptr;
  double node_age_s = 0;
  const std::vector<ExportSpace>& exports;
  const ProcessFigures& process;
};

std::vector<Family> families_of(const Sources& sources);

}  // namespace sluice::metrics
