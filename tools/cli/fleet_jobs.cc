// sluice fleet submit, status, wait, cancel, retry: what concerns Slurm.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <ostream>
#include <thread>

#include "dataplane/base/counted.h"
#include "tools/cli/fleet.h"
#include "tools/cli/fleet_text.h"
#include "tools/cli/format.h"
#include "tools/fleet/jobs.h"
#include "tools/fleet/programs.h"
#include "tools/fleet/status.h"

namespace sluice::cli {
namespace {

constexpr auto kLookEvery = std::chrono::seconds(2);
constexpr int kQuietLooks = 3;  // between a job's end and what follows of it, Slurm may show nothing
constexpr size_t kSlurmWordsMax = 200;

std::string job_name(const fleet::Plan& plan) { return "sluice-" + plan.dataset; }

// What one has said that failed, in a line.
Error slurm_error(const std::string& program, const fleet::Ran& ran) {
  std::string said = ran.err.empty() ? ran.out : ran.err;
  while (said.ends_with('\n')) said.pop_back();
  return {ErrorCode::kConfiguration,
          fmt::format("{} ended with {}: {}", program, ran.exit_code, base::printable(said, kSlurmWordsMax))};
}

Result<std::string> slurm(const std::vector<std::string>& words) {
  auto ran = fleet::run_program(words, fleet::kSlurmLimitS);
  if (!ran) return ran.error();
  if (ran->exit_code != 0) return slurm_error(words[0], *ran);
  return std::move(ran->out);
}

class Fleet {
 public:
  Fleet(const Context& context, const FleetJobFlags& flags)
      : context_(context), directory_(fleet_directory(context, flags.dataset)) {}

  Status load() {
    auto plan = fleet::load_plan(directory_);
    if (!plan) return plan.error();
    plan_ = std::move(*plan);
    auto jobs = fleet::load_jobs(directory_);
    if (!jobs) return jobs.error();
    jobs_ = std::move(*jobs);
    return {};
  }
  // `slurm_problem`: why Slurm did not say anything.
  Result<fleet::FleetStatus> status(std::string* slurm_problem) {
    const auto tries = fleet::load_tries(directory_);
    if (!tries) return tries.error();
    std::optional<std::map<uint32_t, fleet::TaskState>> queue;
    if (!jobs_.jobs.empty()) {
      const auto printed =
          slurm({"squeue", "-h", "-r", "--name=" + job_name(plan_), "-o", std::string(fleet::kQueueFormat)});
      if (printed)
        queue = queue_of(jobs_, *printed);
      else
        *slurm_problem = printed.error().message;
    }
    return status_of(plan_, *tries, jobs_, queue, unix_now_ns());
  }

  // Arrays of these shards, and the job of what comes last, which waits for them and for `waits_for`. All, or
  // none.
  Status submit(const std::vector<uint32_t>& shards, std::vector<uint64_t> waits_for) {
    const size_t before = jobs_.jobs.size();
    Status status = submit_each(shards, std::move(waits_for));
    if (status) return fleet::save_jobs(directory_, jobs_);
    for (size_t i = before; i < jobs_.jobs.size(); ++i)
      (void)slurm({"scancel", std::to_string(jobs_.jobs[i].id)});
    jobs_.jobs.resize(before);
    return status;
  }
  Status cancel(const std::vector<uint64_t>& ids) {
    if (ids.empty()) return {};
    std::vector<std::string> words = {"scancel", "--quiet"};
    for (const uint64_t id : ids) words.push_back(std::to_string(id));
    const auto done = slurm(words);
    return done ? Status() : Status(done.error());
  }

  // When these have ended: what their ranges have left is removed. The id of that job.
  Result<std::string> submit_drop(const std::vector<uint64_t>& ids) {
    std::vector<std::string> options = {"--output=" + (directory_ / "log" / "%j.txt").string()};
    if (!ids.empty()) {
      std::string dependency = "--dependency=afterany";
      for (const uint64_t id : ids) dependency += fmt::format(":{}", id);
      options.push_back(dependency);
    }
    return call_sbatch(options, "drop");
  }

  const fleet::Plan& plan() const { return plan_; }
  fleet::Jobs& jobs() { return jobs_; }
  const std::filesystem::path& directory() const { return directory_; }

 private:
  Status submit_each(const std::vector<uint32_t>& shards, std::vector<uint64_t> waits_for) {
    const auto configuration = slurm({"scontrol", "show", "config"});
    if (!configuration) return configuration.error();
    for (const auto& [offset, tasks] : fleet::arrays_of(shards, fleet::tasks_max_of(*configuration))) {
      const Status done = sbatch(
          {"--array=" + fleet::array_text(tasks), "--output=" + (directory_ / "log" / "%A_%a.txt").string()},
          std::to_string(offset), {.offset = offset});
      if (!done) return done;
      waits_for.push_back(jobs_.jobs.back().id);
    }
    std::vector<std::string> words = {"--output=" + (directory_ / "log" / "%j.txt").string()};
    if (!waits_for.empty()) {
      std::string dependency = "--dependency=afterok";
      for (const uint64_t id : waits_for) dependency += fmt::format(":{}", id);
      words.insert(words.end(), {dependency, "--kill-on-invalid-dep=yes"});
    }
    return sbatch(words, "last", {.last = true});
  }
  Result<std::string> call_sbatch(const std::vector<std::string>& options, const std::string& word) {
    std::vector<std::string> words = {"sbatch", "--parsable", "--job-name=" + job_name(plan_),
                                      "--chdir=" + directory_.string()};
    words.insert(words.end(), jobs_.sbatch.begin(), jobs_.sbatch.end());
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {(directory_ / "shards.sbatch").string(), word, std::to_string(jobs_.retry)});
    return slurm(words);
  }
  Status sbatch(const std::vector<std::string>& options, const std::string& word, fleet::Job job) {
    const auto printed = call_sbatch(options, word);
    if (!printed) return printed.error();
    const auto [end, problem] = std::from_chars(printed->data(), printed->data() + printed->size(), job.id);
    if (problem != std::errc() || job.id == 0)
      return Error{ErrorCode::kConfiguration,
                   "sbatch named no job: " + base::printable(*printed, kSlurmWordsMax)};
    job.retry = jobs_.retry;
    jobs_.jobs.push_back(job);
    return {};
  }

  const Context& context_;
  const std::filesystem::path directory_;
  fleet::Plan plan_;
  fleet::Jobs jobs_;
};

Status must_be_for_slurm(const fleet::Plan& plan, const std::filesystem::path& directory, uint64_t retry) {
  if (plan.emit == "slurm") return {};
  return Error{
      ErrorCode::kUsage,
      fmt::format("{} was planned for the shell: run {}/run.sh [AT-A-TIME [{}]], or plan with --emit slurm",
                  printable(plan.dataset), printable(directory.string()), retry)};
}

api::Json jobs_json(const fleet::Jobs& jobs, size_t from) {
  api::Json list = api::Json::array();
  for (size_t i = from; i < jobs.jobs.size(); ++i)
    list.push_back({{"id", jobs.jobs[i].id}, {"last", jobs.jobs[i].last}});
  return list;
}

void warn_of_slurm(const Context& context, const std::string& problem) {
  if (!problem.empty())
    context.environment.err << "sluice: this is what the shards say; Slurm says nothing: "
                            << printable(problem) << "\n"
                            << std::flush;
}

void tell_submitted(const Context& context, Fleet& fleet, size_t before, size_t shards) {
  std::string ids;
  for (size_t i = before; i < fleet.jobs().jobs.size(); ++i)
    ids += fmt::format(" {}", fleet.jobs().jobs[i].id);
  context.print({{"schema", "sluice.fleet_jobs.v1"},
                 {"shards", shards},
                 {"retry", fleet.jobs().retry},
                 {"jobs", jobs_json(fleet.jobs(), before)}},
                fmt::format("{}: {} submitted, jobs{}\n", printable(fleet.plan().dataset),
                            base::counted(shards, "shard"), ids));
}

}  // namespace

Result<int> submit_fleet(const Context& context, const FleetJobFlags& flags) {
  Fleet fleet(context, flags);
  if (Status status = fleet.load(); !status) return status.error();
  if (Status status = must_be_for_slurm(fleet.plan(), fleet.directory(), 0); !status) return status.error();
  if (!fleet.jobs().jobs.empty())
    return Error{ErrorCode::kDestinationExists,
                 printable(fleet.plan().dataset) +
                     ": was submitted already; see 'sluice fleet status', and 'retry' for what failed"};
  std::vector<uint32_t> shards(fleet.plan().count());
  for (uint32_t i = 0; i < shards.size(); ++i) shards[i] = i + 1;
  fleet.jobs().sbatch = flags.sbatch;
  if (Status status = fleet.submit(shards, {}); !status) return status.error();
  tell_submitted(context, fleet, 0, shards.size());
  return 0;
}

Result<int> retry_fleet(const Context& context, const FleetJobFlags& flags) {
  Fleet fleet(context, flags);
  if (Status status = fleet.load(); !status) return status.error();
  if (Status status = must_be_for_slurm(fleet.plan(), fleet.directory(), 1); !status) return status.error();
  if (fleet.jobs().jobs.empty())
    return Error{ErrorCode::kUsage,
                 printable(fleet.plan().dataset) + ": was never submitted; see 'sluice fleet submit'"};
  std::string problem;
  const auto status = fleet.status(&problem);
  if (!status) return status.error();
  // Whether its job is gone, only Slurm knows.
  if (!problem.empty()) return Error{ErrorCode::kConfiguration, problem};
  const std::vector<uint32_t> shards = to_retry(*status);
  using fleet::ShardState;
  const bool last_too = status->last.state != ShardState::kSucceeded &&
                        status->last.state != ShardState::kRunning &&
                        (!shards.empty() || status->last.state != ShardState::kWaiting);
  if (shards.empty() && !last_too) {
    context.print({{"schema", "sluice.fleet_jobs.v1"},
                   {"shards", 0},
                   {"retry", fleet.jobs().retry},
                   {"jobs", api::Json::array()}},
                  "nothing failed\n");
    return 0;
  }
  // What comes last waits for the shards that still run, and for those that begin again. The job that waited
  // for the former ones goes.
  std::vector<uint64_t> waits_for;
  std::vector<uint64_t> former;
  for (const fleet::Job& job : fleet.jobs().jobs) {
    if (job.last) {
      former.push_back(job.id);
      continue;
    }
    const bool active = std::ranges::any_of(status->shards, [&](const fleet::ShardStatus& one) {
      const bool runs = one.state == ShardState::kRunning || one.state == ShardState::kWaiting;
      return runs && one.shard > job.offset && job.retry == fleet.jobs().retry;
    });
    if (active && shards.empty()) waits_for.push_back(job.id);
  }
  const bool some_run = std::ranges::any_of(status->shards, [](const fleet::ShardStatus& one) {
    return one.state == ShardState::kRunning || one.state == ShardState::kWaiting;
  });
  if (some_run && !shards.empty())
    return Error{
        ErrorCode::kResources,
        printable(fleet.plan().dataset) +
            ": some of its shards still run or wait; see 'sluice fleet wait', then retry what failed"};
  (void)fleet.cancel(former);
  ++fleet.jobs().retry;
  if (!flags.sbatch.empty()) fleet.jobs().sbatch = flags.sbatch;
  const size_t before = fleet.jobs().jobs.size();
  if (Status done = fleet.submit(shards, waits_for); !done) return done.error();
  tell_submitted(context, fleet, before, shards.size());
  return 0;
}

Result<int> cancel_fleet(const Context& context, const FleetJobFlags& flags) {
  Fleet fleet(context, flags);
  if (Status status = fleet.load(); !status) return status.error();
  if (fleet.jobs().jobs.empty())
    return Error{ErrorCode::kUsage, printable(fleet.plan().dataset) +
                                        ": no job of Slurm was submitted; what a shell runs, Ctrl-C cancels"};
  std::vector<uint64_t> ids;
  for (const fleet::Job& job : fleet.jobs().jobs) ids.push_back(job.id);
  if (Status status = fleet.cancel(ids); !status) return status.error();
  std::string text = printable(fleet.plan().dataset) + ": cancelled\n";
  if (fleet.plan().cut_files != 0) {
    const auto job = fleet.submit_drop(ids);
    if (!job) return job.error();
    text += fmt::format("job {} removes what its ranges have left\n",
                        base::printable(job->substr(0, job->find_first_of(";\n")), kSlurmWordsMax));
  }
  context.print({{"schema", "sluice.fleet_jobs.v1"}, {"jobs", jobs_json(fleet.jobs(), 0)}}, text);
  return 0;
}

Result<int> show_fleet(const Context& context, const FleetJobFlags& flags) {
  Fleet fleet(context, flags);
  if (Status status = fleet.load(); !status) return status.error();
  std::string problem;
  const auto status = fleet.status(&problem);
  if (!status) return status.error();
  warn_of_slurm(context, problem);
  context.print(status_json(*status), fleet_text(*status, flags.all));
  return 0;
}

Result<int> wait_for_fleet(const Context& context, const FleetJobFlags& flags) {
  Fleet fleet(context, flags);
  if (Status status = fleet.load(); !status) return status.error();
  const auto began = std::chrono::steady_clock::now();
  int quiet_looks = 0;
  std::string told;
  std::string slurm_told;
  for (;;) {
    std::string problem;
    const auto status = fleet.status(&problem);
    if (!status) return status.error();
    if (problem != slurm_told) warn_of_slurm(context, problem);
    slurm_told = problem;
    const std::string line = fleet_line(*status);
    if (!flags.quiet && line != told)
      context.environment.err << (context.environment.err_is_terminal ? "\r\x1b[K" : "") << line
                              << (context.environment.err_is_terminal ? "" : "\n") << std::flush;
    told = line;
    const bool done = status->state == fleet::ShardState::kSucceeded;
    quiet_looks = status->active() || !problem.empty() ? 0 : quiet_looks + 1;
    const bool late =
        flags.timeout_s > 0 &&
        std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count() >= flags.timeout_s;
    if (done || late || quiet_looks >= kQuietLooks) {
      if (!flags.quiet && context.environment.err_is_terminal)
        context.environment.err << "\r\x1b[K" << std::flush;
      context.print(status_json(*status), fleet_text(*status, false));
      return done || !late ? status->exit_code() : flags.timeout_exit_code;
    }
    std::this_thread::sleep_for(kLookEvery);
  }
}

}  // namespace sluice::cli
