// The command line of `sluice fleet`.
// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>

#include "dataplane/base/arguments/arguments.h"
#include "tools/cli/fleet.h"
#include "tools/fleet/plan/planner.h"

namespace sluice::cli {
namespace {

using Flags = std::shared_ptr<FleetJobFlags>;

CLI::App* add_verb(CLI::App& fleet, Context& context, const Flags& flags, const char* name, const char* about,
                   Result<int> (*perform)(const Context&, const FleetJobFlags&)) {
  CLI::App* command = fleet.add_subcommand(name, about);
  command->add_option("dataset", flags->dataset, "Directory of the plan")->required()->type_name("DATASET");
  command->callback([&context, flags, perform] {
    context.action = [&context, flags, perform] { return perform(context, *flags); };
  });
  return command;
}

void add_sbatch(CLI::App* command, const Flags& flags) {
  command
      ->add_option("--sbatch", flags->sbatch,
                   "A further option of sbatch, such as --sbatch=--partition=dtn; may be repeated")
      ->type_name("OPTION")
      ->allow_extra_args(false);
}

void add_plan(CLI::App& fleet, Context& context) {
  const auto flags = std::make_shared<FleetPlanFlags>();
  CLI::App* command = fleet.add_subcommand("plan", "Divide a dataset into shards of equal cost");
  command->add_option("dataset", flags->dataset, "Directory that is made, of the dataset's name")
      ->required()
      ->type_name("DATASET");
  command->add_option("--from", flags->from, "Nodes that have it, and where; may be repeated")
      ->required()
      ->type_name("NODE[,NODE...]:PATH")
      ->allow_extra_args(false);
  command->add_option("--to", flags->to, "Nodes that get it, and where; may be repeated")
      ->required()
      ->type_name("NODE[,NODE...]:PATH")
      ->allow_extra_args(false);
  command
      ->add_option("--at", flags->at,
                   "Where the shards run: at the nodes it is sent from, or at those that get it (from)")
      ->check(CLI::IsMember({"from", "to"}))
      ->type_name("SIDE");
  command->add_option("--emit", flags->emit, "For whom the plan is made: slurm, or shell (slurm)")
      ->check(CLI::IsMember({"slurm", "shell"}))
      ->type_name("WHAT");
  command->add_option("--shards", flags->shards, "How many (by size, eight a node at least)")
      ->check(arguments::whole(1, fleet::kShardsMax))
      ->type_name("N");
  command->add_flag("--sync", flags->sync, "Only what is missing at the destination or differs");
  command->add_flag("--delete", flags->removes,
                    "With --sync: when all shards have succeeded, remove what the source lacks");
  command->add_flag("--whole-files", flags->whole_files,
                    "Cut no file: each is moved by one shard, and needs no file system that all nodes share");
  command
      ->add_option("--align", flags->align,
                   "Cut files at multiples of this, such as a stripe (16M to 64M, by the dataset)")
      ->type_name("SIZE");
  command
      ->add_option("-o,--option", flags->options,
                   "An option of each session, as a key of 'sluice run' has it; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command
      ->add_option("--node-rate", flags->node_rate, "What a node moves, to weigh names against bytes (10G)")
      ->type_name("RATE");
  command
      ->add_option("--name-cost", flags->name_cost_ms,
                   "Milliseconds that a name costs beside its bytes (0.05)")
      ->check(arguments::number(0, 10'000))
      ->type_name("MS");
  command
      ->add_option("--node-dir", flags->node_directory,
                   "The node of each host; %n: what Slurm calls the host (/etc/sluice)")
      ->type_name("DIR");
  command->callback(
      [&context, flags] { context.action = [&context, flags] { return plan_fleet(context, *flags); }; });
}

void add_shard(CLI::App& fleet, Context& context) {
  const auto flags = std::make_shared<FleetShardFlags>();
  CLI::App* command =
      fleet.add_subcommand("shard", "Run one shard at this host's node, as a task of Slurm does");
  command->add_option("dataset", flags->dataset, "Directory of the plan")->required()->type_name("DATASET");
  command->add_option("shard", flags->shard, "Its number, or last")->required()->type_name("N|last");
  command->add_option("--retry", flags->retry, "How often the plan's failed shards were begun again (0)")
      ->check(arguments::whole(0, 1'000'000))
      ->type_name("N");
  command
      ->add_option("--patience", flags->patience_s, "Seconds to wait for a sluice-control that is away (60)")
      ->check(arguments::whole(0, 86'400))
      ->type_name("S");
  command->callback(
      [&context, flags] { context.action = [&context, flags] { return run_fleet_shard(context, *flags); }; });
}

}  // namespace

void add_fleet_commands(CLI::App& app, Context& context) {
  CLI::App* fleet = app.add_subcommand("fleet", "Move a dataset by many nodes, with Slurm");
  fleet->require_subcommand(1);
  const auto flags = std::make_shared<FleetJobFlags>();
  add_plan(*fleet, context);
  add_sbatch(add_verb(*fleet, context, flags, "submit", "Give the shards to Slurm", submit_fleet), flags);
  CLI::App* status = add_verb(*fleet, context, flags, "status", "Show how far all shards are", show_fleet);
  status->add_flag("-a,--all", flags->all, "Each shard, also those that are done or wait");
  CLI::App* wait =
      add_verb(*fleet, context, flags, "wait", "Show progress until no shard runs or waits", wait_for_fleet);
  wait->add_option("--timeout", flags->timeout_s, "Leave after so many seconds")
      ->check(arguments::number(0, 1e9))
      ->type_name("S");
  wait->add_option("--timeout-exit-code", flags->timeout_exit_code, "Exit status in that case (124)")
      ->check(arguments::whole(0, 255))
      ->type_name("C");
  wait->add_flag("-q,--quiet", flags->quiet, "Show no progress");
  add_verb(*fleet, context, flags, "cancel", "Cancel its jobs and their sessions", cancel_fleet);
  add_sbatch(add_verb(*fleet, context, flags, "retry", "Give to Slurm again what failed, and nothing else",
                      retry_fleet),
             flags);
  add_verb(*fleet, context, flags, "drop", "Remove what its ranges have left unfinished; cancel does it too",
           drop_fleet);
  add_shard(*fleet, context);
  add_verb(*fleet, context, flags, "receipt", "Print a signed statement of all that arrived", fleet_receipt);
}

}  // namespace sluice::cli
