// SPDX-License-Identifier: Apache-2.0
#include "control/node/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "control/hash/several.h"
#include "control/identity/hex.h"

namespace sluice::node {
namespace {

Error usage(std::string message) { return {ErrorCode::kUsage, std::move(message)}; }

// The node's is the least.
Status check_protection(wire::Protection wanted, wire::Protection least) {
  if (wanted >= least) return {};
  return usage(
      fmt::format("protection = \"{}\": this node wants {} at least ([transfer] protection in node.toml)",
                  options::word_of(wanted), options::word_of(least)));
}

Status check_crc(wire::CrcKind kind, bool discard) {
  if (discard || wire::checks(kind)) return {};
  return usage(fmt::format("crc = \"{}\": only into null:, files are always checked: use crc64 or crc32c",
                           options::word_of(kind)));
}

// A probe moves nothing but its echoes, and is an operator's: what it measures is the path and the cards.
Status check_echoes(const Wishes& wishes, transfer::Options* options) {
  if ((options->echoes != 0) != (options->echo_bytes != 0))
    return usage("echoes: give their number and their length, or neither");
  if (options->echoes == 0) return {};
  if (wishes.user)
    return usage("echoes are not for members of [control] users_group: ask an operator of this node");
  if (wishes.order) return usage("echoes: not of what another node orders");
  if (wishes.destination != transfer::kNullDestination)
    return usage("echoes: only into null:, before a byte that is sent there");
  if (options->echo_bytes > options->chunk_bytes)
    return usage(fmt::format("echo_bytes = {}: more than the longest datagram carries: {} (chunk_bytes)",
                             options->echo_bytes, options->chunk_bytes));
  options->lanes = 1;
  return {};
}

Status check_digests(const Wishes& wishes, const transfer::Options& options) {
  if (options.digests == 0) return {};
  if (wishes.destination == transfer::kNullDestination)
    return usage("digests are of files that are stored: not into null:");
  return digests::check_kinds(options.digests);
}

Status check_deadline(const options::Wish& wish) {
  if (wish.deadline_unix_ns.value_or(0) < 0)
    return usage(fmt::format("deadline = {} ns: give a time after 1970", *wish.deadline_unix_ns));
  if (wish.deadline_policy && !wish.deadline_unix_ns)
    return usage("deadline policy without a deadline: give both, or neither");
  return {};
}

// What is done for an operator only.
Status check_for_operators_only(const Wishes& wishes) {
  if (!wishes.user) return {};
  const selection::Keep& keep = wishes.selection.keep;
  if (keep.owner || keep.group || keep.acls)
    return usage(
        "--owner, --group and --acls are not for members of [control] users_group: what they receive belongs "
        "to them; leave these out, or ask an operator of this node");
  for (const options::Option& option : options::all()) {
    if (option.of == options::Of::kTransfer && !option.operators.empty() && option.wish_in(wishes.options))
      return usage(fmt::format("{} is not for members of [control] users_group: {}", option.long_flag(),
                               option.operators));
  }
  if (wishes.options.priority.value_or(0) > 0)
    return usage(fmt::format("priority = {}: a member of [control] users_group has 0 at most",
                             *wishes.options.priority));
  return {};
}

}  // namespace

Result<transfer::Options> parse_options(const Wishes& wishes, const config::Node& node) {
  const options::Wish& wish = wishes.options;
  Result<transfer::Options> filled = options::fill_in(wish, node.transfer);
  if (!filled) return filled.error();
  transfer::Options& result = *filled;
  result.rate_bps = std::min(result.rate_bps, node.port_rate_bps);
  if (result.chunk_auto && !wish.chunk_bytes) result.chunk_bytes = wire::kChunkBytesMax;
  if (result.min_rate_bps > result.rate_bps)
    return usage(
        fmt::format("min_rate = {} bit/s: above the limit of {}", result.min_rate_bps, result.rate_bps));
  if (const Status status = check_crc(result.crc, wishes.destination == transfer::kNullDestination); !status)
    return status.error();
  if (const Status status = check_protection(result.protection, node.transfer.protection); !status)
    return status.error();
  if (const Status status = check_echoes(wishes, &result); !status) return status.error();
  if (const Status status = check_digests(wishes, result); !status) return status.error();
  if (const Status status = check_deadline(wish); !status) return status.error();
  return filled;
}

Status check_priority(int32_t priority) { return options::find("priority")->check(priority, "priority"); }

Status check_limit(uint64_t limit_bps) {
  if (limit_bps == 0) return {};
  return options::find("rate_bps")->check(static_cast<int64_t>(limit_bps), "rate_bps");
}

namespace {

// Of a get from several nodes.
Status check_peers(const Wishes& wishes) {
  std::set<std::string> peers{wishes.peer};
  for (const std::string& peer : wishes.more_peers) {
    if (!peers.insert(peer).second) return usage(peer + ": named twice as a source; give each node once");
  }
  if (peers.size() <= transfer::kLegsMax) return {};
  return usage(fmt::format("{} nodes as sources: {} are possible at most", peers.size(), transfer::kLegsMax));
}

bool is_session_id(const std::string& text) { return text.size() == 32 && identity::is_hex(text); }

// Of a part nothing is known but its place in a file, so it is moved by two nodes that both know what that
// is.
Status check_part(const Wishes& wishes) {
  if (!selection::is_part(wishes.selection.part)) return {};
  if (wishes.order || !wishes.source_node.empty())
    return usage("part: not for a transfer between two other nodes; begin it at one of them");
  if (!wishes.more_peers.empty())
    return usage("part: not of a file that several sources send; leave out --from");
  if (wishes.user || wishes.local_files)
    return usage(
        "part: only of files in exports, by an operator of this node: sessions of several nodes write "
        "one file");
  if (wishes.destination == transfer::kNullDestination) return usage("part: not into null:");
  if (wishes.options.digests.value_or(0) != 0 || wishes.expected)
    return usage(
        "part: digests are of whole files; have them computed at rest, by 'sluice verify --write-manifest'");
  return {};
}

}  // namespace

Status check_wishes(transfer::Role role, const Wishes& wishes) {
  const bool sends = role == transfer::Role::kSource;
  if (wishes.destination.empty())
    return Error{ErrorCode::kUsage, sends ? "no destination: use NODE:PATH or NODE:null:"
                                          : "no destination: name a path, or null:"};
  if (!sends && wishes.sources.empty())
    return Error{ErrorCode::kUsage, "no source given: name at least one file of the peer"};
  if (const Status status = check_peers(wishes); !status) return status;
  if (wishes.selection.keep.numeric_ids && !wishes.selection.keep.names_accounts())
    return usage(
        "numeric ids of what? Ask for the owner, the group or ACLs as well (--owner, --group, --acls)");
  if (const Status status = check_for_operators_only(wishes); !status) return status;
  if (!wishes.id.empty() && !is_session_id(wishes.id))
    return usage("id: has to be 32 hex digits (0 to 9, a to f)");
  if (!wishes.id.empty() && !wishes.source_node.empty())
    return usage("id: not for a transfer between two other nodes; leave it out");
  if (wishes.lease && !wishes.source_node.empty())
    return usage("lease: not for a transfer between two other nodes; begin it at one of them");
  if (wishes.options.max_bytes && !wishes.order && wishes.source_node.empty())
    return usage(
        "max_bytes: only of a transfer between two other nodes, such as 'sluice send a:data/x b:data/'");
  if (const Status status = check_part(wishes); !status) return status;
  // They are this node's operator's, and another node's sessions do not tell them here.
  if ((wishes.order || !wishes.source_node.empty()) &&
      (wishes.options.digests.value_or(0) != 0 || wishes.expected))
    return usage(
        "digests, and lists of them: not of a transfer between two other nodes; run it at one of them");
  if (wishes.order && wishes.options.priority.value_or(0) > 0)
    return usage(
        fmt::format("priority = {}: what another node orders has 0 at most", *wishes.options.priority));
  return selection::check_selection(wishes.selection, wishes.sources.size());
}

}  // namespace sluice::node
