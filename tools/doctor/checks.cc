// What there is to look at, and what is well with the node itself: its files, its daemons, its certificates.
// The host is host_checks.cc, exports and peers have files of their own.
// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/checks.h"

#include <fmt/format.h>

#include <algorithm>

#include "dataplane/base/counted.h"
#include "tools/doctor/findings.h"

namespace sluice::doctor {
namespace {

constexpr int64_t kDayS = 86'400;

// Who makes a new one, and where it goes.
std::string renewal(const Facts& facts, const ExpiryFacts& one) {
  if (one.kind == "own" && facts.node->ca_file.empty())
    return "a new one: sluice node rotate, and its peers take it: sluice node trust NAME --successor";
  if (one.kind == "own")
    return "a new one: sluice authority token where the authority is, then here: sluice node enrol @TOKEN";
  if (one.kind == "peer")
    return fmt::format(
        "a new one: sluice node rotate there, then here: sluice node trust {} --successor, or CERT.pem",
        one.name);
  if (one.kind == "ca")
    return "put the new certificate of the authority beside this one into [control] ca_file";
  return "copy the authority's new list to where [control] crl_file says";
}

}  // namespace

bool hidden(const Facts& facts, const std::string& problem) {
  const auto says = [&problem](std::string_view words) { return problem.find(words) != std::string::npos; };
  return facts.looker.stranger && (says("Permission denied") || says("no permission"));
}

std::string as_owner(const Facts& facts) {
  return fmt::format("run it as {0}: sudo -u {0} sluice --node {1} doctor", facts.looker.owner,
                     facts.directory);
}

std::string unseen(const Facts& facts) {
  return fmt::format("you may not see this as {}", facts.looker.user);
}

// The kernel's measure of how far memory of one node is from another; 10 is the node itself.
std::string distance_text(const Facts& facts, int from, int to) {
  const auto row = static_cast<size_t>(from);
  const auto column = static_cast<size_t>(to);
  if (row >= facts.numa_distances.size() || column >= facts.numa_distances[row].size()) return "";
  return fmt::format(" (distance {})", facts.numa_distances[row][column]);
}

std::string_view level_name(Level level) {
  switch (level) {
    case Level::kPass:
      return "pass";
    case Level::kWarn:
      return "warn";
    case Level::kFail:
      return "fail";
  }
  return "";
}

std::vector<Finding> check(const Facts& facts) {
  std::vector<Finding> out;
  check_node(facts, out);
  check_kernel(facts, out);
  if (!facts.node) return out;  // all else depends on what it wants
  check_memory(facts, out);
  check_device(facts, out);
  check_ports(facts, out);
  check_cores(facts, out);
  check_exports(facts, out);
  check_daemons(facts, out);
  check_audit_log(facts, out);
  check_users(facts, out);
  check_certificates(facts, out);
  check_peers(facts, out);
  check_peer_look(facts, out);
  return out;
}

Level worst(const std::vector<Finding>& findings) {
  Level level = Level::kPass;
  for (const Finding& finding : findings) level = std::max(level, finding.level);
  return level;
}

void check_node(const Facts& facts, std::vector<Finding>& out) {
  if (facts.looker.stranger) {
    warn(out, "user",
         fmt::format("this is {}, and the node is {}'s: limits, rights and speeds are those of {}",
                     facts.looker.user, facts.looker.owner, facts.looker.user),
         as_owner(facts));
  }
  if (facts.node) {
    pass(out, "configuration", facts.directory + "/node.toml is good");
  } else if (hidden(facts, facts.configuration_error)) {
    warn(out, "configuration", unseen(facts), as_owner(facts));
  } else {
    fail(out, "configuration", facts.configuration_error, "correct what the message names");
  }
  if (facts.identity_error.empty()) {
    pass(out, "identity", "key and certificate are there");
  } else if (hidden(facts, facts.identity_error)) {
    warn(out, "identity", unseen(facts), as_owner(facts));
  } else {
    fail(out, "identity", facts.identity_error,
         "restore identity/ from its backup, or [node] name as it was, or sluice node init a new node");
  }
}

void check_daemons(const Facts& facts, std::vector<Finding>& out) {
  const DaemonFacts& daemon = facts.daemon;
  if (hidden(facts, daemon.problem)) return warn(out, "control", unseen(facts), as_owner(facts));
  if (daemon.stands_still)
    return fail(out, "control", daemon.problem,
                "if its log says nothing, start it again: sessions go on from where they are");
  if (!daemon.problem.empty() && !facts.listen_problem.empty())
    return fail(
        out, "control",
        fmt::format("{}; it cannot listen on {}: {}", daemon.problem, facts.node->listen,
                    facts.listen_problem),
        "[control] listen: another port, if another node of this host has this one; peers name it in sluice "
        "node trust NAME --address HOST:PORT");
  if (!daemon.problem.empty())
    return warn(out, "control", daemon.problem, fmt::format("sluice-control --node {}", facts.directory));
  pass(out, "control", "it runs, version " + daemon.version);
  if (daemon.journal_lost) {
    fail(out, "journal",
         fmt::format(
             "{} is not the journal that sluice-control has open: that was removed, moved or replaced, and "
             "what it says is lost when sluice-control ends",
             facts.node->journal().string()),
         "put it back if it was moved; otherwise let the sessions end ('sluice session list'), then start "
         "sluice-control again; docs/RUNBOOK.md, \"Disaster\"");
  } else {
    pass(out, "journal", facts.node->journal().string() + " is in its place");
  }
  if (daemon.attached) {
    pass(out, "dataplane", "it is attached");
  } else {
    fail(out, "dataplane", "sluice-control has none: nothing moves",
         fmt::format("sluice-dataplane --node {}", facts.directory));
  }
  if (!daemon.fallback_for.empty()) {
    warn(out, "fallback",
         fmt::format("device {} is gone ({}): sockets carry the data", daemon.fallback_for,
                     daemon.fallback_reason),
         "bring the device back: the node returns to it by itself; docs/RUNBOOK.md, \"The card died\"");
  } else if (facts.node->fallback != config::kNoFallback && daemon.attached) {
    pass(out, "fallback", "the device carries the data; sockets would, if it were gone");
  }
  if (daemon.version != facts.version) {
    warn(out, "version", fmt::format("sluice-control is {}, this command {}", daemon.version, facts.version),
         "restart the daemons after an upgrade");
  }
}

void check_audit_log(const Facts& facts, std::vector<Finding>& out) {
  const std::string file = facts.node->audit_log().string();
  if (hidden(facts, facts.audit_problem)) {
    warn(out, "audit_log", unseen(facts), as_owner(facts));
  } else if (facts.audit_problem.empty()) {
    pass(out, "audit_log", file + " can be written");
  } else {
    warn(out, "audit_log",
         fmt::format("no line can be added to {}: {}; what is missing in it is in the log of sluice-control",
                     file, facts.audit_problem),
         "move away what is in its place, or see its rights and attributes (ls -l, lsattr); nothing is "
         "restarted");
  }
}

void check_certificates(const Facts& facts, std::vector<Finding>& out) {
  bool all_well = true;
  for (const ExpiryFacts& one : facts.expiries) {
    if (one.left_s > 30 * kDayS) continue;
    all_well = false;
    const std::string remedy = renewal(facts, one) + "; or set the clock of this host, if it is wrong";
    if (one.left_s <= 0) {
      fail(out, "certificates", fmt::format("{} is out of date since {}", one.what, one.when), remedy);
    } else {
      warn(out, "certificates",
           fmt::format("{} is out of date in {}, on {}", one.what, base::counted(one.left_s / kDayS, "day"),
                       one.when),
           remedy);
    }
  }
  if (all_well) pass(out, "certificates", "none is out of date within 30 days");
}

}  // namespace sluice::doctor
