// sluice fleet plan: lists the dataset, divides it, and writes the plan's directory.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <ostream>
#include <span>

#include "dataplane/base/config/config.h"
#include "dataplane/base/counted.h"
#include "dataplane/base/utc.h"
#include "tools/cli/canceller.h"
#include "tools/cli/connect.h"
#include "tools/cli/fleet.h"
#include "tools/cli/fleet_lister.h"
#include "tools/cli/format.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/names_format.h"
#include "tools/cli/run_file.h"
#include "tools/cli/target.h"
#include "tools/fleet/jobs.h"
#include "tools/fleet/names.h"
#include "tools/fleet/plan/planner.h"
#include "tools/fleet/shard_writer.h"

namespace sluice::cli {
namespace {

constexpr uint64_t kShardsANode = 8;
constexpr uint64_t kNamesAShard = 50'000;
// Where files are cut: at a multiple of every stripe that is likely, and not into more sessions than they are
// worth.
constexpr uint64_t kAlignBytesMin = 16U << 20;
constexpr uint64_t kAlignBytesMax = 64U << 20;

// A two-hundredth of a shard, so that none exceeds the mean by more than 1 %.
uint64_t align_for(uint64_t asked, uint64_t bytes, uint32_t shards) {
  if (asked != 0) return asked;
  return std::clamp(std::bit_floor(bytes / shards / (2 * fleet::kUnits)), kAlignBytesMin, kAlignBytesMax);
}

// The ranges of a file, to their shards, and to the last one that it is to be finished.
Status add_ranges(std::span<const fleet::Piece> pieces, const fleet::Listed& listed,
                  fleet::ShardWriter& writer, fleet::ShardWriter& last) {
  using What = selection::FilePart::What;
  const Result<std::string> set = fleet::make_set();
  if (!set) return set.error();
  for (const fleet::Piece& piece : pieces) {
    const bool open_ended = piece.offset + piece.bytes == listed.bytes;
    writer.add_range(piece.shard + 1, piece.bytes,
                     {.name = listed.names.front(),
                      .part = {.what = What::kRange,
                               .set = *set,
                               .offset = piece.offset,
                               .length = open_ended ? 0 : piece.bytes}});
  }
  last.add_range(0, 0, {.name = listed.names.front(), .part = {.what = What::kFinish, .set = *set}});
  return {};
}

// Both readings of the list; then what each shard has. `align_bytes`: where files may be cut; 0: nowhere.
Status divide(const std::filesystem::path& list, fleet::Plan& plan, uint32_t shards, uint64_t align_bytes,
              fleet::ShardWriter& writer, fleet::ShardWriter& last) {
  fleet::Planner planner(
      {.shards = shards, .name_cost_bytes = plan.name_cost_bytes, .align_bytes = align_bytes});
  fleet::Listed listed;
  const auto reading = [&list, &listed](const auto& each) -> Status {
    auto reader = fleet::NamesReader::open(list);
    if (!reader) return reader.error();
    for (;;) {
      const Result<bool> more = reader->next(&listed);
      if (!more) return more.error();
      if (!*more) return {};
      // What stands in a file of TOML is UTF-8.
      const bool whole = listed.names.size() != 1 || !is_utf8(listed.names.front());
      if (Status status =
              each(fleet::Item{.bytes = listed.bytes, .names = listed.names.size(), .whole = whole});
          !status)
        return status;
    }
  };
  Status status = reading([&planner](const fleet::Item& item) -> Status {
    planner.consider(item);
    return {};
  });
  if (!status) return status;
  planner.settle();
  status = reading([&](const fleet::Item& item) -> Status {
    const std::span<const fleet::Piece> pieces = planner.place(item);
    if (pieces.size() == 1) return writer.add(pieces.front().shard + 1, item.bytes, listed.names);
    ++plan.cut_files;
    return add_ranges(pieces, listed, writer, last);
  });
  if (!status) return status;
  uint64_t worst = 0;
  for (const auto& load : planner.loads()) worst = std::max(worst, load.cost);
  const double mean = static_cast<double>(planner.total_cost()) / shards;
  if (mean > 0) {
    plan.worst_over_mean = static_cast<double>(worst) / mean;
    plan.largest_in_shards = static_cast<double>(planner.largest_cost()) / mean;
  }
  return {};
}

uint32_t shards_for(const FleetPlanFlags& flags, const fleet::Plan& plan, uint64_t large,
                    uint64_t align_bytes) {
  if (flags.shards != 0) return flags.shards;
  // No more than there is something to be moved by each.
  const uint64_t pieces =
      flags.whole_files ? 0 : plan.bytes / (2 * (align_bytes != 0 ? align_bytes : kAlignBytesMin));
  const uint64_t wanted = std::max({kShardsANode * plan.here().size(), plan.names / kNamesAShard + 1,
                                    large / fleet::SessionLimits().large_files + 1});
  return static_cast<uint32_t>(
      std::clamp<uint64_t>(std::min(wanted, std::max(plan.names, pieces)), 1, fleet::kShardsMax));
}

// A directory of its own that becomes the plan's when all is written.
class Unfinished {
 public:
  explicit Unfinished(std::filesystem::path final)
      : final_(std::move(final)), path_(final_.string() + ".unfinished") {}
  ~Unfinished() {
    std::error_code ignored;
    if (made_) std::filesystem::remove_all(path_, ignored);
  }
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;

  Status make() {
    std::error_code problem;
    if (std::filesystem::exists(final_, problem))
      return Error{
          ErrorCode::kDestinationExists,
          printable(final_.string()) + ": is there already; remove it, or give the plan another name"};
    if (::mkdir(path_.c_str(), 0777) != 0)
      return Error{errno == EEXIST ? ErrorCode::kDestinationExists : ErrorCode::kConfiguration,
                   printable(path_.string()) + ": cannot be made: " + std::strerror(errno)};
    made_ = true;
    for (const char* each : {"tries", "log", "receipts", "digests"})
      std::filesystem::create_directory(path_ / each, problem);
    return problem ? Status(Error{ErrorCode::kConfiguration,
                                  printable(path_.string()) + ": " + problem.message()})
                   : Status();
  }
  Status finish() {
    std::error_code problem;
    std::filesystem::rename(path_, final_, problem);
    if (problem)
      return Error{ErrorCode::kConfiguration,
                   printable(final_.string()) + ": cannot be made: " + problem.message()};
    made_ = false;
    return {};
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  const std::filesystem::path final_;
  const std::filesystem::path path_;
  bool made_ = false;
};

Result<fleet::Plan> plan_of(const FleetPlanFlags& flags, const std::filesystem::path& directory) {
  fleet::Plan plan;
  plan.dataset = directory.filename().string();
  plan.made = base::utc_text(unix_now_ns());
  plan.at = flags.at == "to" ? fleet::Side::kTo : fleet::Side::kFrom;
  plan.sync = flags.sync;
  plan.removes = flags.removes;
  plan.emit = flags.emit;
  plan.node_directory = flags.node_directory;
  if (flags.removes && !flags.sync) return usage("--delete: only with --sync");
  if (!is_utf8(plan.dataset)) return usage(printable(plan.dataset) + ": the name of a dataset is UTF-8");
  if (flags.node_directory.empty() || flags.node_directory.front() != '/')
    return usage("--node-dir: give an absolute path, which counts at each host");
  const Result<uint64_t> rate = rate_option("--node-rate", flags.node_rate);
  if (!rate) return rate.error();
  plan.name_cost_bytes = static_cast<uint64_t>(static_cast<double>(*rate) / 8 * flags.name_cost_ms / 1000);
  auto from = parse_places("--from", flags.from);
  if (!from) return from.error();
  auto to = parse_places("--to", flags.to);
  if (!to) return to.error();
  plan.from = std::move(*from);
  plan.to = std::move(*to);
  for (const fleet::Place& place : plan.here()) {
    if (place.path.front() != '/' || place.path != plan.here().front().path)
      return usage(
          fmt::format("--{}: the shards run at any of these nodes, so give one absolute path that all of "
                      "them have (not {}:{})",
                      flags.at, printable(place.node), printable(place.path)));
  }
  return plan;
}

// 0: the plan chooses.
Result<uint64_t> align_of(const FleetPlanFlags& flags) {
  if (flags.align.empty()) return uint64_t{0};
  if (flags.whole_files) return usage("--align: of what is cut; not with --whole-files");
  const Result<uint64_t> bytes = config::parse_size(flags.align);
  if (!bytes) return usage("--align: " + bytes.error().message);
  if (*bytes == 0 || *bytes % selection::kPartAlignmentBytes != 0)
    return usage("--align: give a whole number of MiB, as a multiple of the stripe");
  return *bytes;
}

// For whoever gives it up: the unfinished files that no session of its own removes.
Status write_drops(const fleet::Plan& plan, const std::filesystem::path& path,
                   const fleet::RunOptions& options, std::vector<fleet::FileRange> files) {
  if (files.empty()) return {};
  for (fleet::FileRange& file : files) file.part.what = selection::FilePart::What::kDrop;
  return fleet::write_file(path / "shard-drop.toml", run_file_text(plan, 0, {}, options, files));
}

Status write_plan(const fleet::Plan& plan, const std::filesystem::path& path,
                  const std::filesystem::path& final, const fleet::RunOptions& options,
                  const fleet::ShardWriter& writer, const fleet::ShardWriter& last) {
  std::vector<fleet::ShardTotals> totals = writer.totals();
  totals[0] = last.totals()[0];
  if (Status status = write_drops(plan, path, options, last.ranges(0)); !status) return status;
  for (uint32_t shard = 0; shard < totals.size(); ++shard) {
    const auto& ranges = shard == 0 ? last.ranges(0) : writer.ranges(shard);
    const std::string text = run_file_text(plan, shard, totals[shard], options, ranges);
    const std::filesystem::path file = path / (fleet::shard_name(shard) + ".toml");
    // What is wrong with an option is told now, and not by a thousand jobs.
    if (shard == 0 && totals[shard].sessions == 0 && ranges.empty()) {
      const auto tried = parse_run_file(run_file_text(plan, 0, {.sessions = 1}, options), "--option");
      if (!tried) return Error{ErrorCode::kUsage, tried.error().message};
    } else if (shard <= 1) {
      const auto tried = parse_run_file(text, "--option");
      if (!tried) return Error{ErrorCode::kUsage, tried.error().message};
    }
    if (Status status = fleet::write_file(file, text); !status) return status;
  }
  const std::string script =
      plan.emit == "slurm" ? slurm_script(plan, final, own_program()) : shell_script(plan, own_program());
  if (Status status =
          fleet::write_file(path / (plan.emit == "slurm" ? "shards.sbatch" : "run.sh"), script, 0777);
      !status)
    return status;
  if (Status status = fleet::make_lease(path); !status) return status;
  return fleet::write_json(path / "plan.json", plan_json(plan));
}

std::string plan_text(const fleet::Plan& plan, const std::string& dataset, const FleetLister& lister) {
  std::string text =
      fmt::format("{}: {}, {} in {}, the largest {:.2f} times the mean\n", printable(plan.dataset),
                  base::counted(plan.names, "name"), format_bytes(plan.bytes),
                  base::counted(plan.count(), "shard"), plan.worst_over_mean);
  if (plan.sync)
    text += fmt::format("{} the same{}\n", base::counted(lister.same(), "name is", "names are"),
                        plan.removes ? fmt::format(", {} to be removed", lister.extra()) : "");
  if (plan.left_out != 0)
    text += fmt::format("{} left out: no file, link or directory\n",
                        base::counted(plan.left_out, "name is", "names are"));
  if (plan.cut_files != 0)
    text += fmt::format("{} cut into ranges, which several shards move\n",
                        base::counted(plan.cut_files, "file is", "files are"));
  if (plan.worst_over_mean > 1.01 && plan.largest_in_shards > 1.01 && plan.bytes != 0)
    text += fmt::format(
        "{} is {} of all, and is moved whole, so its shard takes as long as {:.1f} mean ones\n", plan.largest,
        format_percent(static_cast<double>(plan.largest_bytes) / static_cast<double>(plan.bytes)),
        plan.largest_in_shards);
  const std::string place = printable(dataset);
  return text + (plan.emit == "slurm" ? "next: sluice fleet submit " + place + "\n"
                                      : "next: " + place + "/run.sh\n");
}

}  // namespace

Result<int> plan_fleet(const Context& context, const FleetPlanFlags& flags) {
  const std::filesystem::path directory = fleet_directory(context, flags.dataset);
  Result<fleet::Plan> plan = plan_of(flags, directory);
  if (!plan) return plan.error();
  const Result<uint64_t> align = align_of(flags);
  if (!align) return align.error();
  fleet::RunOptions options;
  if (flags.sync) options.emplace_back("overwrite = true");
  for (const std::string& each : flags.options) {
    const Result<std::string> line = fleet::option_line(each);
    if (!line) return line.error();
    options.push_back(*line);
  }
  Canceller canceller(context.environment);
  const Interrupt interrupt([&canceller] { canceller.on_interrupt(); },
                            static_cast<int>(ErrorCode::kCancelled));
  auto client = connect_to_node(context.node_directory());
  if (!client) return client.error();
  Unfinished unfinished(directory);
  if (Status status = unfinished.make(); !status) return status.error();
  const std::filesystem::path list = unfinished.path() / "names";
  auto files = fleet::NamesWriter::open(list);
  if (!files) return files.error();
  fleet::ShardWriter last(unfinished.path(), 0);
  FleetLister lister(context, **client, *plan, std::move(*files), last);
  if (Status status = lister.list(canceller); !status) return status.error();
  const uint32_t shards = shards_for(flags, *plan, lister.large(), *align);
  fleet::ShardWriter writer(unfinished.path(), shards);
  const uint64_t align_bytes = flags.whole_files ? 0 : align_for(*align, plan->bytes, shards);
  if (Status status = divide(list, *plan, shards, align_bytes, writer, last); !status) return status.error();
  for (fleet::ShardWriter* each : {&writer, &last}) {
    if (Status status = each->finish(); !status) return status.error();
  }
  const std::vector<fleet::ShardTotals> totals = writer.totals();
  plan->shards.assign(totals.begin() + 1, totals.end());
  plan->last_sessions = last.totals()[0].sessions;
  std::error_code ignored;
  std::filesystem::remove(list, ignored);
  if (Status status = write_plan(*plan, unfinished.path(), directory, options, writer, last); !status)
    return status.error();
  if (Status status = unfinished.finish(); !status) return status.error();
  api::Json object = plan_json(*plan);
  object.erase("shards");
  object["shards"] = plan->count();
  object["directory"] = directory.string();
  context.print(object, plan_text(*plan, flags.dataset, lister));
  if (plan->problems == 0) return 0;
  context.environment.err << "sluice: " << base::counted(plan->problems, "name")
                          << " could not be looked at, and will be missing\n";
  return static_cast<int>(ErrorCode::kPartial);
}

}  // namespace sluice::cli
