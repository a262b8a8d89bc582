// A plan and what is in it, in words.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "tools/sim/plan.h"

namespace sluice::sim {
namespace {

struct BreakName {
  Break value;
  const char* name;
};
constexpr BreakName kBreaks[] = {
    {Break::kNone, "none"},
    {Break::kReportBeforeCommit, "report-before-commit"},
    {Break::kCallBeforeCommit, "call-before-commit"},
    {Break::kMoveBeforeCommit, "move-before-commit"},
    {Break::kNoCrcCheck, "no-crc-check"},
    {Break::kNoForget, "no-forget"},
    {Break::kCommitBeforeSync, "commit-before-sync"},
    {Break::kNoDirectorySync, "no-directory-sync"},
    {Break::kDoubleRate, "double-rate"},
    {Break::kMute, "mute"},
    {Break::kNoReread, "no-reread"},
    {Break::kRenameBeforeSync, "rename-before-sync"},
    {Break::kNoRenewal, "no-renewal"},
    {Break::kLostPause, "lost-pause"},
    {Break::kNoInquiry, "no-inquiry"},
    {Break::kLostGrowth, "lost-growth"},
    {Break::kTrustJournal, "trust-journal"},
    {Break::kNoLease, "no-lease"},
    {Break::kReplayedGrant, "replayed-grant"},
    {Break::kStolenGrant, "stolen-grant"},
    {Break::kEndlessGrant, "endless-grant"},
};

}  // namespace

const char* crash_name(CrashKind kind) {
  constexpr const char* kNames[] = {"dataplane", "control", "machine"};
  return kNames[static_cast<size_t>(kind)];
}

Break break_named(const std::string& name, bool* known) {
  for (const BreakName& each : kBreaks) {
    *known = name == each.name;
    if (*known) return each.value;
  }
  return Break::kNone;
}

std::vector<std::string> break_names() {
  std::vector<std::string> names;
  for (const BreakName& each : kBreaks) {
    if (each.value != Break::kNone) names.emplace_back(each.name);
  }
  return names;
}

std::string Plan::text() const {
  std::string out = fmt::format("seed {}\nfiles {} packs {} growing {} foreseen {} list_ns {}\n", seed,
                                fmt::join(sizes, " "), packs, growing, foreseen, list_ns);
  out += fmt::format("extent_bytes {} chunk_bytes {} partition_bytes {} lanes {} workers {} {}\n",
                     extent_bytes, chunk_bytes, partition_bytes, lanes, workers[0], workers[1]);
  out += fmt::format(
      "tx_extents {} rx_extents {} credit {} crc {} protection {} {} epochs of 2^{} udp_checksum {} "
      "direct {} rate_bps {} queue {} {} expected_loss_ppm {} fec {} compress {} compressible {}\n",
      tx_extents, rx_extents, credit, crc_kind_name(crc), wire::protection_name(protection[0]),
      wire::protection_name(protection[1]), key_epoch_bits, udp_checksum, direct, rate_bps, queue_datagrams,
      rate::mode_name(rate_mode), expected_loss_ppm, options::word_of(fec), options::word_of(compress),
      compressible);
  out += fmt::format("status_interval_ns {} sync_lag_bytes {} sync_lag_ns {} crc_lag_ns {} tick_ns {}\n",
                     status_interval_ns, sync_lag_bytes, sync_lag_ns, crc_lag_ns, tick_ns);
  for (uint32_t node = 0; node < 2; ++node) {
    const DiskPlan& d = disk[node];
    out += fmt::format("path[{}] {} lost_frames {:x}\n", node, emulator::to_json(path[node]).dump(),
                       lost_frames[node]);
    out += fmt::format(
        "disk[{}] latency_ns {} jitter_ns {} slow {}/1e6 of {} ns, sync_ns {} jitter {} errors {}/1e6 max "
        "{}, "
        "errors {}/1e6 max {}, full {}, sector {}, commit_ns {}\n",
        node, d.latency_ns, d.jitter_ns, d.slow_per_million, d.slow_ns, d.sync_ns, d.sync_jitter_ns,
        d.sync_error_per_million, d.sync_errors_max, d.error_per_million, d.errors_max, d.full,
        d.sector_bytes, d.commit_ns);
  }
  out += fmt::format(
      "carries {} bytes from {} ns on, stays {}; blackholes {}/s of {} ns, forged {}/1e6 alone {}, device "
      "burst {} hold_ns {} keeps {} ring {} caller_copies {} holes {}\n",
      carries_bytes, narrow_ns, stays_narrow, blackhole_per_second, blackhole_ns, forged_per_million,
      stranger_alone, device_burst, device_hold_ns, device_keeps, device_ring, caller_copies, holes);
  if (nat) out += fmt::format("nat before the initiator, forgets at {} ns\n", fmt::join(nat_forgets_ns, " "));
  out += fmt::format("stream latency_ns {} jitter_ns {} cuts {} notice_ns {}\n", stream_latency_ns,
                     stream_jitter_ns, fmt::join(cuts, " "), cut_notice_ns);
  for (const Crash& c : crashes) {
    out += fmt::format("crash {} of node {} at {} ns for {} ns\n", crash_name(c.kind), c.node, c.time_ns,
                       c.down_ns);
  }
  if (legs != 1) out += fmt::format("legs {}\n", legs);
  for (const LegDeath& death : leg_deaths)
    out += fmt::format("leg {} dies at node {} at {} ns\n", death.leg, death.node, death.time_ns);
  out += course_text(*this);
  out += troubles_text(*this);
  constexpr const char* kActs[] = {"pause", "continue", "cancel", "stop"};
  for (const Action& a : actions) {
    out += fmt::format("{} at node {} at {} ns\n", kActs[static_cast<size_t>(a.act)], a.node, a.time_ns);
  }
  out += fmt::format("full {}/1e6 for {} ns\n", full_per_million, full_ns);
  out += fmt::format("initiator {} open_objects_max {} open_ahead {} stall {} resume {} ns\n", initiator,
                     open_objects_max, open_ahead, stall_timeout_ns, resume_timeout_ns);
  constexpr const char* kFreezes[] = {"last bytes", "farewell", "end"};
  out += fmt::format("initiator: journal lost at {} ns, freeze of {} ns at its {}\n", journal_lost_ns,
                     freeze.ns, kFreezes[static_cast<size_t>(freeze.at)]);
  out += fmt::format(
      "crash_at_points {}/1e6, source_changes_ns {}, snapshot_ns {}, damage {}, misread {}, "
      "safety_ns {}\n",
      crash_at_points_per_million, source_changes_ns, snapshot_ns, damage, misread, safety_ns);
  return out;
}

}  // namespace sluice::sim
