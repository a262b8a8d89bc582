// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/fleet_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "tools/cli/format.h"

namespace sluice::cli {
namespace {

using fleet::ShardState;
using fleet::ShardStatus;

constexpr size_t kFailedShown = 20;
constexpr double kSilentShownS = 60;

std::string name_of(const ShardStatus& one) { return one.shard == 0 ? "last" : fmt::format("{}", one.shard); }

// What there is to say beside figures.
std::string remark(const ShardStatus& one) {
  if (one.silent_s > kSilentShownS) return "not heard of for " + format_duration(one.silent_s);
  if (one.state == ShardState::kWaiting && !one.task.reason.empty() && one.task.reason != "None")
    return one.task.reason;
  if (!one.attempt) return "";
  if (one.state == ShardState::kFailed)
    return fmt::format("{} ({})", one.attempt->error, one.attempt->exit_code);
  if (one.state == ShardState::kLost) return "its job is gone: see 'sluice fleet retry'";
  return one.attempt->waiting_for.empty() ? one.attempt->verdict : one.attempt->waiting_for;
}

std::string row(const ShardStatus& one) {
  const bool running = one.state == ShardState::kRunning;
  const double fraction =
      one.bytes_total == 0 ? 0 : static_cast<double>(one.bytes_done) / static_cast<double>(one.bytes_total);
  return fmt::format("{:>6}  {:<9}  {:<12}  {:>9}  {:>5}  {:>13}  {:>8}  {:>3}  {}\n", name_of(one),
                     state_word(one.state), printable(one.attempt ? one.attempt->node : one.task.node),
                     format_bytes(one.bytes_total),
                     one.state == ShardState::kSucceeded ? "100 %" : format_percent(fraction),
                     running && one.rate_bps > 0 ? format_rate(one.rate_bps) : "",
                     one.eta_s ? format_duration(*one.eta_s) : "",
                     one.attempt ? fmt::format("{}", one.attempt->epoch) : "", printable(remark(one)));
}

bool shown(const ShardStatus& one, bool all) {
  return all || (one.state != ShardState::kPlanned && one.state != ShardState::kWaiting &&
                 one.state != ShardState::kSucceeded);
}

}  // namespace

std::string fleet_line(const fleet::FleetStatus& status) {
  std::string text = fmt::format("{}: {}", printable(status.dataset), state_word(status.state));
  for (const auto& [state, count] : status.counts) text += fmt::format(", {} {}", count, state_word(state));
  text += fmt::format(" of {} shards; {} of {} names, {} of {}", status.shards.size(), status.names_done,
                      status.names_total, format_bytes(status.bytes_done), format_bytes(status.bytes_total));
  if (status.names_failed != 0) text += fmt::format("; {} failed", status.names_failed);
  if (status.rate_bps > 0) text += "; " + format_rate(status.rate_bps);
  if (status.eta_s && status.active()) text += ", ETA " + format_duration(*status.eta_s);
  return text;
}

std::string fleet_text(const fleet::FleetStatus& status, bool all) {
  std::string text = fleet_line(status) + "\n";
  if (status.slowest) text += fmt::format("slowest: shard {}\n", *status.slowest);
  std::string rows;
  for (const ShardStatus& one : status.shards) {
    if (shown(one, all)) rows += row(one);
  }
  if (shown(status.last, all)) rows += row(status.last);
  if (!rows.empty())
    text += fmt::format("{:>6}  {:<9}  {:<12}  {:>9}  {:>5}  {:>13}  {:>8}  {:>3}\n", "SHARD", "STATE",
                        "NODE", "SIZE", "DONE", "RATE", "ETA", "TRY") +
            rows;
  size_t failed = 0;
  for (const ShardStatus& one : status.shards) {
    if (!one.attempt || one.state == ShardState::kSucceeded) continue;
    for (const auto& [path, reason] : one.attempt->failed) {
      if (++failed <= kFailedShown) text += fmt::format("failed: {}: {}\n", path, printable(reason));
    }
  }
  if (failed > kFailedShown) text += "more names failed: see --json\n";
  return text;
}

}  // namespace sluice::cli
