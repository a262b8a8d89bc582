// sluice watch: its options, and what they mean.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <variant>

#include "control/client/requests.h"
#include "dataplane/base/config/config.h"
#include "tools/cli/app.h"
#include "tools/cli/folder_watch.h"
#include "tools/cli/format.h"
#include "tools/cli/state_file.h"
#include "tools/cli/target.h"
#include "tools/cli/transfer_flags.h"
#include "tools/unattended/words.h"

namespace sluice::cli {
namespace {

struct FolderFlags {
  TransferFlags transfer;
  std::string quiet_time = "5s";
  std::string marker;
  std::vector<std::string> patterns;
  std::string then = "keep";
  std::string receipts;
  std::string state;
};

constexpr std::string_view kMoveTo = "move:";
constexpr int64_t kQuietMostS = 86'400;
// Of a transfer, those that fit one that does not end.
constexpr std::string_view kOptionsOfFolders[] = {
    "lanes",    "mode",  "rate_bps",    "log_level",   "priority",  "expected_loss", "fec",
    "compress", "crc",   "protection",  "chunk_bytes", "overwrite", "mkdir",         "verify",
    "owner",    "group", "numeric_ids", "xattrs",      "acls",      "ipv4",          "ipv6"};

// "5s", "2m", "1h", or seconds.
Result<int64_t> quiet_ns(const std::string& text) {
  std::string number = text;
  int64_t unit_s = 1;
  if (!number.empty() && std::string_view("smh").find(number.back()) != std::string_view::npos) {
    unit_s = number.back() == 'h' ? 3600 : number.back() == 'm' ? 60 : 1;
    number.pop_back();
  }
  const auto count = unattended::number_of<uint32_t>(number);
  if (count && *count != 0 && static_cast<int64_t>(*count) * unit_s <= kQuietMostS)
    return static_cast<int64_t>(*count) * unit_s * unattended::kOneSecondNs;
  return usage(fmt::format("--quiet-time {}: give a time from 1s to 24h, such as 5s or 2m", printable(text)));
}

Status plan_end(const FolderFlags& flags, const std::filesystem::path& working_directory,
                const Folder& folder, FolderPlan* plan) {
  if (flags.then == "keep") return {};
  if (flags.then == "remove") {
    plan->removes = true;
    return {};
  }
  const std::string to = flags.then.starts_with(kMoveTo) ? flags.then.substr(kMoveTo.size()) : "";
  if (to.empty())
    return usage(fmt::format("--then {}: write keep, remove or move:DIR", printable(flags.then)));
  Result<Folder> target = Folder::open(working_directory / to);
  if (!target) return usage(fmt::format("--then {}", target.error().message));
  if (target->device() != folder.device() || target->inode() == folder.inode())
    return usage(fmt::format("--then move:{}: give another directory of the same file system as {}",
                             printable(to), printable(folder.path().string())));
  plan->move_to.emplace(std::move(*target));
  return {};
}

Status plan_request(const Context& context, const FolderFlags& flags, const Folder& folder,
                    FolderPlan* plan) {
  TransferFlags transfer = flags.transfer;
  transfer.paths = {folder.path().string() + "/", flags.transfer.paths[1]};
  auto request = transfer_request(Direction::kSend, transfer, context.environment.working_directory, nullptr);
  if (!request) return request.error();
  plan->sender.request = std::get<api::SendRequest>(*request);
  if (api::is_null_destination(plan->sender.request.destination()))
    return usage("null: what arrives there is nowhere; a watched folder needs a directory");
  return {};
}

Status plan_receipts(const FolderFlags& flags, const std::filesystem::path& working_directory,
                     FolderPlan* plan) {
  if (flags.receipts.empty()) return {};
  plan->sender.receipts = working_directory / flags.receipts;
  std::error_code problem;
  if (std::filesystem::is_directory(plan->sender.receipts, problem)) return {};
  return usage(fmt::format("--receipts {}: there is no such directory", printable(flags.receipts)));
}

Result<FolderPlan> folder_plan_of(const Context& context, const FolderFlags& flags, const Folder& folder) {
  const std::filesystem::path& here = context.environment.working_directory;
  FolderPlan plan;
  const Result<int64_t> quiet = quiet_ns(flags.quiet_time);
  if (!quiet) return quiet.error();
  plan.rule = {.quiet_ns = *quiet, .marked_only = !flags.marker.empty()};
  if (flags.marker.find('/') != std::string::npos || flags.marker == ".")
    return usage(fmt::format("--marker {}: give what the name of a marker ends in, such as .done",
                             printable(flags.marker)));
  plan.marker = flags.marker;
  std::vector<selection::Rule> rules;
  for (const std::string& pattern : flags.patterns) rules.push_back({.include = true, .pattern = pattern});
  if (!rules.empty()) rules.push_back({.include = false, .pattern = "*"});
  Result<selection::Filter> filter = selection::Filter::make(rules);
  if (!filter) return Error{ErrorCode::kUsage, "--pattern: " + filter.error().message};
  plan.filter = std::move(*filter);
  if (Status status = plan_end(flags, here, folder, &plan); !status) return status.error();
  if (Status status = plan_receipts(flags, here, &plan); !status) return status.error();
  if (Status status = plan_request(context, flags, folder, &plan); !status) return status.error();
  plan.sender.folder = folder.path();
  plan.sender.quiet = flags.transfer.quiet;
  plan.state = here / flags.state;
  if (flags.state.empty()) {
    const Result<std::filesystem::path> usual = usual_state_file(
        "watch", {context.node_directory().string(), folder.path().string(), flags.transfer.paths[1]});
    if (!usual) return usual.error();
    plan.state = *usual;
  }
  return plan;
}

// Outside the exports the node opens single files only. Where its configuration cannot be read here, the node
// says so itself, of the first file.
Status check_export(const Context& context, const std::filesystem::path& folder) {
  const auto directory = context.existing_node_directory();
  if (!directory) return {};
  const auto node = config::load(*directory);
  if (!node) return {};
  const bool inside = std::ranges::any_of(node->exports, [&folder](const config::Export& each) {
    std::error_code problem;
    const std::filesystem::path real = std::filesystem::weakly_canonical(each.path, problem);
    const std::filesystem::path& root = problem ? each.path : real;
    return std::mismatch(root.begin(), root.end(), folder.begin(), folder.end()).first == root.end();
  });
  if (inside) return {};
  return Error{
      ErrorCode::kOutsideExports,
      fmt::format("{}: is in no export of this node; watch a directory of one, or make an export of it "
                  "in node.toml",
                  printable(folder.string()))};
}

Result<int> watch_it(const Context& context, const FolderFlags& flags) {
  if (flags.transfer.paths.size() != 2) return usage("give a directory of this host, and NODE:PATH");
  std::error_code problem;
  const std::filesystem::path path =
      std::filesystem::canonical(context.environment.working_directory / flags.transfer.paths[0], problem);
  if (problem)
    return Error{ErrorCode::kSourceUnreadable,
                 fmt::format("{}: {}", printable(flags.transfer.paths[0]), problem.message())};
  Result<Folder> folder = Folder::open(path);
  if (!folder) return folder.error();
  if (Status inside = check_export(context, path); !inside) return inside.error();
  Result<FolderPlan> plan = folder_plan_of(context, flags, *folder);
  if (!plan) return plan.error();
  return watch_folder(context, std::move(*folder), std::move(*plan));
}

}  // namespace

void add_folder_command(CLI::App& app, Context& context) {
  const auto flags = std::make_shared<FolderFlags>();
  CLI::App* const command = app.add_subcommand(
      "watch", "Send what comes to stand in a directory, each file once, until interrupted");
  command
      ->add_option(
          "paths", flags->transfer.paths,
          "A directory beneath an export of this node, and where its files go: a directory of another node")
      ->required()
      ->type_name("DIR NODE:PATH");
  command
      ->add_option("--quiet-time", flags->quiet_time,
                   "A file is finished when it is closed and has not changed for so long (5s)")
      ->type_name("T");
  command
      ->add_option("--marker", flags->marker,
                   "A file is finished when a file beside it has its name and this behind it, such as .done")
      ->type_name("SUFFIX");
  command
      ->add_option("--pattern", flags->patterns,
                   "Only files that fit this pattern, as those of --include. May be given more than once")
      ->type_name("PATTERN")
      ->allow_extra_args(false);
  command
      ->add_option("--then", flags->then,
                   "When a file has arrived: keep it (the default), remove it, or move it into DIR, if it is "
                   "still what "
                   "was sent")
      ->type_name("keep|remove|move:DIR");
  command
      ->add_option("--receipts", flags->receipts,
                   "Keep the receipt of each session here; without one its files stay")
      ->type_name("DIR");
  command
      ->add_option("--state", flags->state,
                   "What was sent is remembered here (default: ~/.local/state/sluice/...)")
      ->type_name("FILE");
  for (const std::string_view option : kOptionsOfFolders) add_option(*command, flags->transfer, option);
  add_option(*command, flags->transfer, "quiet", {}, "Print no line for each session");
  command->callback(
      [&context, flags] { context.action = [&context, flags] { return watch_it(context, *flags); }; });
}

}  // namespace sluice::cli
