// SPDX-License-Identifier: Apache-2.0
#include "control/metrics/table.h"

#include <string_view>

namespace sluice::metrics {
namespace {

constexpr std::string_view kPrefix = "sluice_";

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  while (!text.empty()) {
    const size_t end = text.find(',');
    words.emplace_back(text.substr(0, end));
    text = end == std::string_view::npos ? "" : text.substr(end + 1);
  }
  return words;
}

bool begins_with_any(std::string_view name, std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words) {
    if (name.starts_with(word)) return true;
  }
  return false;
}

// "loop_ns_max" becomes "loop_max".
std::string without_nanoseconds(std::string name) {
  const size_t at = name.find("_ns");
  if (at != std::string::npos) name.erase(at, 3);
  return name;
}

std::vector<MetricInfo> make_table() {
  std::vector<MetricInfo> all;
  const auto add = [&all](std::string name, Type type, std::string_view labels, std::string help) {
    all.push_back(
        {.name = std::move(name), .type = type, .labels = words_of(labels), .help = std::move(help)});
  };
#define SLUICE_METRIC(name, type, labels, help) add("sluice_" #name, Type::k##type, labels, help);
#define SLUICE_PROCESS_METRIC(name, type, labels, help) add("process_" #name, Type::k##type, labels, help);
#include "control/metrics/metrics.def"
#undef SLUICE_METRIC
#undef SLUICE_PROCESS_METRIC
  for (uint32_t i = 0; i < board::kCounters; ++i) {
    const board::CounterInfo& counter = board::counter_table()[i];
    if (drop_reason(counter).empty()) all.push_back(info_of(counter));
  }
  return all;
}

std::vector<size_t> make_indices() {
  std::vector<size_t> indices;
  size_t next = index_of(Metric::kCount);
  for (uint32_t i = 0; i < board::kCounters; ++i) {
    const bool drop = !drop_reason(board::counter_table()[i]).empty();
    indices.push_back(drop ? index_of(Metric::port_rx_drops_total) : next++);
  }
  return indices;
}

}  // namespace

bool is_level(const board::CounterInfo& counter) { return std::string_view(counter.name).ends_with("_max"); }

bool in_seconds(const board::CounterInfo& counter) { return std::string_view(counter.unit) == "ns"; }

bool is_of_port(const board::CounterInfo& counter) {
  return begins_with_any(counter.name, {"rx_", "tx_", "peer_", "socket_", "neighbour_"});
}

std::string_view drop_reason(const board::CounterInfo& counter) {
  constexpr std::string_view kDrop = "rx_drop_";
  const std::string_view name = counter.name;
  return name.starts_with(kDrop) ? name.substr(kDrop.size()) : "";
}

MetricInfo info_of(const board::CounterInfo& counter) {
  const std::string_view name = counter.name;
  MetricInfo info{.type = is_level(counter) ? Type::kGauge : Type::kCounter, .help = counter.help};
  info.name = kPrefix;
  if (is_of_port(counter)) {
    info.name += "port_";
    info.labels.emplace_back("port");
  } else if (!name.starts_with("disk_")) {
    info.name += "worker_";
  }
  info.labels.emplace_back("worker");
  info.name += without_nanoseconds(counter.name);
  if (in_seconds(counter)) info.name += "_seconds";
  if (!is_level(counter)) info.name += "_total";
  return info;
}

const std::vector<MetricInfo>& table() {
  static const std::vector<MetricInfo> all = make_table();
  return all;
}

size_t index_of(board::Counter counter) {
  static const std::vector<size_t> indices = make_indices();
  return indices[static_cast<size_t>(counter)];
}

std::string reference_markdown() {
  std::string text = "| metric | type | labels | meaning |\n| --- | --- | --- | --- |\n";
  for (const MetricInfo& info : table()) {
    text += "| `" + info.name + "` | " + (info.type == Type::kCounter ? "counter" : "gauge") + " | ";
    for (size_t i = 0; i < info.labels.size(); ++i) text += (i == 0 ? "`" : ", `") + info.labels[i] + "`";
    text += " | " + info.help + " |\n";
  }
  text += "\n| `reason` of `sluice_port_rx_drops_total` | meaning |\n| --- | --- |\n";
  for (uint32_t i = 0; i < board::kCounters; ++i) {
    const board::CounterInfo& counter = board::counter_table()[i];
    const std::string_view reason = drop_reason(counter);
    if (!reason.empty()) text += "| `" + std::string(reason) + "` | " + counter.help + " |\n";
  }
  return text;
}

}  // namespace sluice::metrics
