// The table of all metrics that a node tells: name, type, labels, help. Made of
// control/metrics/metrics.def and of dataplane/board/counters.def; the exporter, the reference
// (docs/METRICS.md) and the tests read it.
//
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/board/board.h"

namespace sluice::metrics {

enum class Metric : uint32_t {
#define SLUICE_METRIC(name, type, labels, help) name,
#define SLUICE_PROCESS_METRIC(name, type, labels, help) process_##name,
#include "control/metrics/metrics.def"
#undef SLUICE_METRIC
#undef SLUICE_PROCESS_METRIC
  kCount
};

enum class Type : uint8_t { kCounter, kGauge };

struct MetricInfo {
  std::string name;
  Type type = Type::kGauge;
  std::vector<std::string> labels;
  std::string help;
};

// Those of metrics.def in the order of Metric, then one for each counter of a worker but the reasons to
// drop, which are one metric (port_rx_drops_total).
const std::vector<MetricInfo>& table();
constexpr size_t index_of(Metric metric) { return static_cast<size_t>(metric); }
size_t index_of(board::Counter counter);

// How a worker's counter is called: sluice_port_ what the device or its sockets counted, sluice_disk_,
// else sluice_worker_; nanoseconds become seconds, and what only grows ends in _total.
MetricInfo info_of(const board::CounterInfo& counter);
bool is_level(const board::CounterInfo& counter);    // not a count
bool in_seconds(const board::CounterInfo& counter);  // its value is nanoseconds
bool is_of_port(const board::CounterInfo& counter);  // has the label `port`
// "crc" of rx_drop_crc; empty: no reason to drop.
std::string_view drop_reason(const board::CounterInfo& counter);

// Markdown tables of every metric and every reason to drop; docs/METRICS.md contains them word for word
// between
// <!-- metrics-reference-begin --> and <!-- metrics-reference-end -->.
std::string reference_markdown();

}  // namespace sluice::metrics
