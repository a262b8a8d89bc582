// SPDX-License-Identifier: Apache-2.0
#include "control/node/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "control/board/flow_table.h"
#include "control/board/session_log.h"

namespace sluice::node {
namespace {

constexpr double kExpectedLossMax = transfer::kExpectedLossPpmMax * 1e-6;

Error usage(std::string message) { return {ErrorCode::kUsage, std::move(message)}; }

// The node's is the least.
Result<wire::Protection> parse_protection(const std::string& wish, const config::Node& node) {
  const wire::Protection least = wire::protection_of(node.protection).value_or(wire::Protection::kAes128Gcm);
  if (wish.empty()) return least;
  const std::optional<wire::Protection> wanted = wire::protection_of(wish);
  if (!wanted) return usage(fmt::format("protection = \"{}\": use aes-128-gcm, aes-256-gcm or crc", wish));
  if (*wanted < least)
    return usage(
        fmt::format("protection = \"{}\": this node wants {} at least ([transfer] protection in node.toml)",
                    wish, node.protection));
  return *wanted;
}

Result<wire::CrcKind> parse_crc(const std::string& crc, bool discard) {
  if (crc == "crc64") return wire::CrcKind::kCrc64Ecma;
  if (crc == "crc32c") return wire::CrcKind::kCrc32c;
  if (crc != "none" && crc != "read")
    return usage(fmt::format("crc = \"{}\": use crc64, crc32c, or none or read into null:", crc));
  if (!discard)
    return usage(
        fmt::format("crc = \"{}\": only into null:, files are always checked: use crc64 or crc32c", crc));
  return crc == "none" ? wire::CrcKind::kNone : wire::CrcKind::kRead;
}

Status take_deadline(const Wishes& wishes, transfer::Options* result) {
  if (wishes.deadline_unix_ns < 0)
    return usage(fmt::format("deadline = {} ns: give a time after 1970", wishes.deadline_unix_ns));
  result->deadline_unix_ns = wishes.deadline_unix_ns;
  if (wishes.deadline_policy.empty()) return {};
  if (wishes.deadline_unix_ns == 0) return usage("deadline policy without a deadline: give both, or neither");
  const auto policy = deadline::policy_of(wishes.deadline_policy);
  if (!policy)
    return usage(fmt::format("deadline policy = \"{}\": use refuse, warn or stop", wishes.deadline_policy));
  result->deadline_policy = *policy;
  return {};
}

// What is done for an operator only.
Status check_for_operators_only(const Wishes& wishes) {
  if (!wishes.user) return {};
  const selection::Keep& keep = wishes.selection.keep;
  if (keep.owner || keep.group || keep.xattrs || keep.acls)
    return usage(
        "--owner, --group, --xattrs and --acls are not for members of [control] users_group: leave them out, "
        "or ask an operator of this node");
  if (wishes.mkdir)
    return usage(
        "--mkdir is not for members of [control] users_group: make the directories, or ask an operator");
  if (wishes.priority > 0)
    return usage(
        fmt::format("priority = {}: a member of [control] users_group has 0 at most", wishes.priority));
  return {};
}

}  // namespace

Result<transfer::Options> parse_options(const Wishes& wishes, const config::Node& node) {
  using transfer::IpFamily;
  const bool discard = wishes.destination == transfer::kNullDestination;
  transfer::Options result;
  result.lanes = wishes.lanes != 0 ? wishes.lanes : node.lanes;
  if (result.lanes > control::kLanesMax)
    return usage(fmt::format("lanes = {}: 1 to {} are possible", result.lanes, control::kLanesMax));
  result.rate_bps = wishes.rate_bps != 0 ? wishes.rate_bps : node.rate_bps;
  result.rate_bps = std::min(result.rate_bps, node.port_rate_bps);
  const Result<wire::CrcKind> crc = parse_crc(wishes.crc.empty() ? node.crc : wishes.crc, discard);
  if (!crc) return crc.error();
  result.crc_kind = *crc;
  const Result<wire::Protection> protection = parse_protection(wishes.protection, node);
  if (!protection) return protection.error();
  result.protection = *protection;
  if (wishes.ip == "4") {
    result.family = IpFamily::kIp4;
  } else if (wishes.ip == "6") {
    result.family = IpFamily::kIp6;
  } else if (!wishes.ip.empty()) {
    return usage(fmt::format("ip = \"{}\": use 4 or 6", wishes.ip));
  }
  result.chunk_auto = wishes.chunk_auto;
  result.chunk_bytes = wishes.chunk_bytes != 0 ? wishes.chunk_bytes
                       : wishes.chunk_auto     ? wire::kChunkBytesMax
                       : node.chunk_bytes != 0 ? node.chunk_bytes
                                               : kChunkBytesDefault;
  if (result.chunk_bytes < wire::kChunkBytesMin || result.chunk_bytes > wire::kChunkBytesMax ||
      result.chunk_bytes % wire::kChunkBytesStep != 0) {
    return usage(fmt::format("chunk_bytes = {}: a multiple of {}, {} to {}", result.chunk_bytes,
                             wire::kChunkBytesStep, wire::kChunkBytesMin, wire::kChunkBytesMax));
  }
  const std::string& mode = wishes.mode.empty() ? node.rate_mode : wishes.mode;
  const auto known = rate::mode_of(mode);
  if (!known) return usage(fmt::format("mode = \"{}\": use adaptive, fixed or cubic", mode));
  result.mode = *known;
  const std::string& fec = wishes.fec.empty() ? node.fec : wishes.fec;
  const auto* const code = std::find(std::begin(transfer::kFecNames), std::end(transfer::kFecNames), fec);
  if (code == std::end(transfer::kFecNames))
    return usage(fmt::format("fec = \"{}\": use off, auto, rs or raptorq", fec));
  result.fec = static_cast<transfer::Fec>(code - std::begin(transfer::kFecNames));
  const double loss = wishes.expected_loss.value_or(0);
  if (!(loss >= 0 && loss <= kExpectedLossMax))
    return usage(fmt::format("expected loss of {}: 0 to {} is possible", loss, kExpectedLossMax));
  result.expected_loss_ppm = static_cast<uint32_t>(std::lround(loss * 1e6));
  result.min_rate_bps = wishes.min_rate_bps;
  if (result.min_rate_bps > result.rate_bps)
    return usage(
        fmt::format("min_rate = {} bit/s: above the limit of {}", result.min_rate_bps, result.rate_bps));
  result.timeout_ns = wishes.timeout_s * transfer::kSecondNs;
  if (const Status status = check_priority(wishes.priority); !status) return status.error();
  result.priority = wishes.priority;
  if (!wishes.log_level.empty() && !control::log_level_of(wishes.log_level))
    return usage(control::wrong_log_level(wishes.log_level));
  if (const Status status = take_deadline(wishes, &result); !status) return status.error();
  result.overwrite = wishes.overwrite;
  result.verify = wishes.verify;
  result.mkdir = wishes.mkdir;
  return result;
}

Status check_priority(int32_t priority) {
  if (priority >= -transfer::kPriorityMax && priority <= transfer::kPriorityMax) return {};
  return usage(fmt::format("priority = {}: -{} to {} are possible", priority, transfer::kPriorityMax,
                           transfer::kPriorityMax));
}

Status check_wishes(transfer::Role role, const Wishes& wishes) {
  const bool sends = role == transfer::Role::kSource;
  if (wishes.destination.empty())
    return Error{ErrorCode::kUsage, sends ? "no destination: use NODE:PATH or NODE:null:"
                                          : "no destination: name a path, or null:"};
  if (!sends && wishes.sources.empty())
    return Error{ErrorCode::kUsage, "no source given: name at least one file of the peer"};
  if (wishes.selection.keep.numeric_ids && !wishes.selection.keep.names_accounts())
    return usage(
        "numeric ids of what? Ask for the owner, the group or ACLs as well (--owner, --group, --acls)");
  if (const Status status = check_for_operators_only(wishes); !status) return status;
  return selection::check_selection(wishes.selection, wishes.sources.size());
}

}  // namespace sluice::node
