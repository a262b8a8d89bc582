// What comes last in a fleet: with --delete what the source lacks is removed, then directories get their
// modes and times, which all that was made and removed in them has changed.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "dataplane/base/counted.h"
#include "tools/cli/fleet_shard.h"
#include "tools/cli/format.h"
#include "tools/cli/names_format.h"

namespace sluice::cli {
namespace {

constexpr size_t kRemovalsMax = 10'000'000;

}  // namespace

Status ShardRun::check_all_done() const {
  const auto tries = fleet::load_tries(directory_);
  if (!tries) return tries.error();
  for (uint32_t shard = 1; shard <= plan_.count(); ++shard) {
    const auto found = tries->find(shard);
    const fleet::Try* const best = found == tries->end() ? nullptr : fleet::latest(found->second);
    if (best != nullptr && best->state == fleet::Try::State::kSucceeded) continue;
    return Error{
        ErrorCode::kPartial,
        fmt::format("{} has not succeeded: what comes last waits for all shards, and nothing was removed",
                    fleet::shard_name(shard))};
  }
  return {};
}

Status ShardRun::run_last() {
  if (Status status = check_all_done(); !status) return status;
  const auto all = transfers();
  if (!all) return all.error();
  if (Status status = finish_files(*all); !status) return status;
  if (plan_.removes) {
    if (Status status = remove_extra(); !status) return status;
  }
  auto number = static_cast<uint32_t>(try_.sessions.size());
  for (const RunTransfer& each : *all) {
    if (!each.flags.part.empty()) continue;
    auto request = transfer_request(each.direction, each.flags, directory_, nullptr);
    if (!request) return request.error();
    options_of(*request).set_overwrite(true);
    if (Status status = run_session(++number, std::move(*request)); !status) return status;
  }
  return send_top();
}

// Files whose ranges several shards have written get their names, before it is asked what is missing.
Status ShardRun::finish_files(const std::vector<RunTransfer>& all) {
  uint32_t number = 0;
  for (const RunTransfer& each : all) {
    if (each.flags.part.empty()) continue;
    auto request = transfer_request(each.direction, each.flags, directory_, nullptr);
    if (!request) return request.error();
    if (Status status = run_session(++number, std::move(*request), cut_name(each)); !status) return status;
  }
  return {};
}

// Both sides are compared once more, so what goes is what the source lacks now. Where something still seems
// to be missing, the destination's file system may list names otherwise than they were sent, and what the
// source seems to lack may be what was sent.
Status ShardRun::remove_extra() {
  const fleet::Place& own = plan_.here().front();
  const fleet::Place& peer = plan_.other_side(0);
  const bool backwards = plan_.at == fleet::Side::kTo;
  api::CompareRequest asked;
  asked.set_peer(peer.node);
  asked.set_own_path(own.path);
  asked.set_peer_path(peer.path);
  asked.set_from_peer(backwards);
  std::vector<std::pair<std::string, bool>> extra;
  std::string missing;
  std::string problem;
  const Status status = client_->compare(asked, [&](const api::CompareReply& part) {
    for (const api::NameDifference& each : part.differences()) {
      const bool directory = each.type() == api::NameEntry::DIRECTORY;
      if (each.kind() == api::NameDifference::EXTRA) {
        const std::string beneath = each.path() + "/";
        while (directory && !extra.empty() && extra.back().first.starts_with(beneath)) extra.pop_back();
        extra.emplace_back(each.path(), directory);
      }
      if (each.kind() == api::NameDifference::MISSING && !directory) missing = each.path();
      if (!each.error().empty()) problem = escaped(each.path()) + ": " + each.error();
    }
    return extra.size() <= kRemovalsMax && !canceller_.interrupted();
  });
  if (!status) return status;
  if (canceller_.interrupted())
    return Error{ErrorCode::kCancelled, "interrupted while it compared; nothing was removed"};
  if (!problem.empty())
    return Error{ErrorCode::kPartial, "nothing was removed, since not all is known: " + problem};
  if (!missing.empty())
    return Error{ErrorCode::kPartial,
                 "nothing was removed, since a name is missing at the destination: " + escaped(missing) +
                     "; it is new, or the file system there lists it under another name. Plan again"};
  if (extra.size() > kRemovalsMax)
    return Error{ErrorCode::kResources,
                 fmt::format("nothing was removed: more than {} names are to go", kRemovalsMax)};
  uint64_t removed = 0;
  for (const auto& [path, directory] : extra) {
    api::RemoveNameRequest request;
    if (!backwards) request.set_peer(peer.node);
    request.set_path(path_beneath(backwards ? own.path : peer.path, path));
    request.set_recursive(directory);
    const auto done = client_->remove_name(request);
    if (!done)
      return Error{done.error().code, escaped(path) + ": cannot be removed: " + done.error().message};
    if (done->failed() != 0)
      return Error{ErrorCode::kPartial, escaped(path) + ": not all of it could be removed"};
    removed += done->entries();
    const size_t slash = path.rfind('/');
    if (slash != std::string::npos) touched_.push_back(path.substr(0, slash));
  }
  try_.notes.push_back(base::counted(removed, "name") + " removed");
  return write();
}

// The directory of the dataset itself, and those from which something was removed. The root of a peer's
// export is its operator's.
Status ShardRun::send_top() {
  const bool backwards = plan_.at == fleet::Side::kTo;
  const fleet::Place& own = plan_.here().front();
  const fleet::Place& peer = plan_.other_side(0);
  std::ranges::sort(touched_);
  const auto doubles = std::ranges::unique(touched_);
  touched_.erase(doubles.begin(), doubles.end());
  const bool root = !backwards && peer.path.find('/') == std::string::npos;
  if (root && touched_.empty()) return {};
  api::TransferRequest request;
  if (backwards) {
    api::GetRequest get;
    get.set_peer(peer.node);
    get.add_sources(peer.path + "/");
    get.set_destination(own.path + "/");
    request = std::move(get);
  } else {
    api::SendRequest send;
    send.set_peer(peer.node);
    send.add_sources(own.path + "/");
    send.set_destination(peer.path + "/");
    request = std::move(send);
  }
  api::TransferOptions& options = options_of(request);
  options.set_overwrite(true);
  options.set_mkdir(true);
  options.set_top(!root);
  for (const std::string& each : touched_) options.add_names(each);
  if (touched_.empty()) options.add_rules()->set_pattern("*");  // nothing that is in it
  return run_session(static_cast<uint32_t>(try_.sessions.size() + 1), std::move(request));
}

}  // namespace sluice::cli
