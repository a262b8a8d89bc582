// sluice fleet drop: removes what ranges have left unfinished, of a fleet that was given up.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <ostream>

#include "dataplane/base/counted.h"
#include "tools/cli/canceller.h"
#include "tools/cli/connect.h"
#include "tools/cli/fleet.h"
#include "tools/cli/follow.h"
#include "tools/cli/format.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/run_file.h"
#include "tools/cli/transfer_flags.h"
#include "tools/fleet/tries.h"

namespace sluice::cli {
namespace {

// What they have moved of these files is gone, so that a retry begins with them again.
Status forget_tries(const std::filesystem::path& directory, const fleet::Plan& plan) {
  const auto tries = fleet::load_tries(directory);
  if (!tries) return tries.error();
  for (const auto& [shard, all] : *tries) {
    if (shard != 0 && plan.shards[shard - 1].ranges == 0) continue;
    for (const fleet::Try& one : all) {
      std::error_code problem;
      std::filesystem::remove(fleet::try_file(directory, shard, one.epoch), problem);
      if (problem)
        return Error{ErrorCode::kConfiguration,
                     fmt::format("{}: a try of {} cannot be removed: {}", printable(directory.string()),
                                 fleet::shard_name(shard), problem.message())};
    }
  }
  return {};
}

Status drop_one(api::Client& client, const RunTransfer& transfer, const std::filesystem::path& directory) {
  auto request = transfer_request(transfer.direction, transfer.flags, directory, nullptr);
  if (!request) return request.error();
  const Result<std::string> id = client.begin(*request);
  if (!id) return id.error();
  const auto session = client.watch(*id, std::nullopt, [](const api::Session&) { return true; });
  if (!session) return session.error();
  const int code = exit_code_of(*session);
  if (code == 0) return {};
  return Error{static_cast<ErrorCode>(code),
               printable(transfer.flags.paths.front()) + ": " + session->error()};
}

}  // namespace

Result<int> drop_fleet(const Context& context, const FleetJobFlags& flags) {
  const std::filesystem::path directory = fleet_directory(context, flags.dataset);
  const auto plan = fleet::load_plan(directory);
  if (!plan) return plan.error();
  uint32_t dropped = 0;
  if (plan->cut_files != 0) {
    const std::filesystem::path path = directory / "shard-drop.toml";
    const auto text = fleet::read_file(path);
    if (!text) return text.error();
    const auto file = parse_run_file(*text, path.string());
    if (!file) return file.error();
    auto client = connect_to_node(context.node_directory());
    if (!client) return client.error();
    // First of all: what is removed has not succeeded, also if this is interrupted.
    if (Status status = forget_tries(directory, *plan); !status) return status.error();
    for (const RunTransfer& each : file->transfers) {
      if (Status status = drop_one(**client, each, directory); !status) return status.error();
      ++dropped;
    }
  }
  context.print({{"schema", "sluice.fleet_drop.v1"}, {"dataset", plan->dataset}, {"files", dropped}},
                fmt::format("{}: {} dropped\n", printable(plan->dataset),
                            base::counted(dropped, "unfinished file is", "unfinished files are")));
  return 0;
}

}  // namespace sluice::cli
