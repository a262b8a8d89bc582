// SPDX-License-Identifier: Apache-2.0
#include "tools/fleet/jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "dataplane/base/text.h"

namespace sluice::fleet {
namespace {

constexpr char kJobsSchema[] = "sluice.fleet_jobs.v1";
constexpr uint32_t kTasksMaxUsual = 1000;

// One word of a shell, whatever it holds.
std::string quoted(const std::string& text) {
  std::string word = "'";
  for (const char c : text) word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

// The directory of the node of Sluice; %n becomes what Slurm calls the host.
std::string node_word(const std::string& pattern, const std::string& host) {
  std::string word;
  size_t from = 0;
  for (size_t at = pattern.find("%n"); at != std::string::npos; at = pattern.find("%n", from)) {
    word += quoted(pattern.substr(from, at - from)) + host;
    from = at + 2;
  }
  return word + quoted(pattern.substr(from));
}

template <typename Number>
bool number_of(std::string_view text, Number* number) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), *number);
  return problem == std::errc() && end == text.data() + text.size();
}

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  for (size_t from = 0;;) {
    const size_t at = line.find('|', from);
    fields.push_back(line.substr(from, at == std::string_view::npos ? at : at - from));
    if (at == std::string_view::npos) return fields;
    from = at + 1;
  }
}

}  // namespace

Status save_jobs(const std::filesystem::path& plan, const Jobs& jobs) {
  Json list = Json::array();
  for (const Job& job : jobs.jobs)
    list.push_back({{"id", job.id}, {"last", job.last}, {"offset", job.offset}, {"retry", job.retry}});
  return write_json(
      plan / "jobs.json",
      {{"schema", kJobsSchema}, {"retry", jobs.retry}, {"sbatch", jobs.sbatch}, {"jobs", std::move(list)}});
}

Result<Jobs> load_jobs(const std::filesystem::path& plan) {
  const std::filesystem::path file = plan / "jobs.json";
  std::error_code problem;
  if (!std::filesystem::exists(file, problem)) return Jobs();
  const Result<Json> object = read_json(file, kJobsSchema);
  if (!object) return object.error();
  try {
    Jobs jobs;
    jobs.retry = object->at("retry");
    for (const Json& one : object->at("sbatch")) jobs.sbatch.push_back(one);
    for (const Json& one : object->at("jobs"))
      jobs.jobs.push_back(
          {.id = one.at("id"), .last = one.at("last"), .offset = one.at("offset"), .retry = one.at("retry")});
    return jobs;
  } catch (const Json::exception&) {
    return Error{ErrorCode::kConfiguration,
                 base::printable(file.string()) + ": a member is missing or wrong"};
  }
}

std::string slurm_script(const Plan& plan, const std::filesystem::path& directory,
                         const std::string& program) {
  return fmt::format(
      "#!/bin/bash\n"
      "# A task of the dataset {}, as 'sluice fleet submit' gives it to sbatch: its words are what is added "
      "to the number of the task, or\n"
      "# 'last', and the number of the retry; 'drop': what a fleet that was cancelled has left goes.\n"
      "#SBATCH --nodes=1 --ntasks=1 --requeue --open-mode=append\n"
      "set -u\n"
      "sluice=({} --node {} fleet)\n"
      "if [ \"$1\" = drop ]; then exec \"${{sluice[@]}}\" drop {}; fi\n"
      "shard=last\n"
      "if [ \"$1\" != last ]; then shard=$((SLURM_ARRAY_TASK_ID + $1)); fi\n"
      "exec \"${{sluice[@]}}\" shard --retry \"$2\" {} \"$shard\"\n",
      base::printable(plan.dataset), quoted(program), node_word(plan.node_directory, "\"$SLURMD_NODENAME\""),
      quoted(directory.string()), quoted(directory.string()));
}

std::string shell_script(const Plan& plan, const std::string& program) {
  return fmt::format(
      "#!/bin/bash\n"
      "# Runs all shards of the dataset {} here, one after another, or as many at a time as the first word "
      "says. What has succeeded is not\n"
      "# run again; the second word is one more each time that the others shall be.\n"
      "set -u\n"
      "cd \"$(dirname \"$0\")\" || exit\n"
      "sluice=({} --node {} fleet shard --retry \"${{2:-0}}\" .)\n"
      "seq 1 {} | xargs -P \"${{1:-1}}\" -n 1 \"${{sluice[@]}}\" || exit\n"
      "exec \"${{sluice[@]}}\" last\n",
      base::printable(plan.dataset), quoted(program), node_word(plan.node_directory, "\"$(uname -n)\""),
      plan.count());
}

std::string array_text(const std::vector<uint32_t>& numbers) {
  std::string text;
  for (size_t i = 0; i < numbers.size();) {
    size_t end = i + 1;
    while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
    if (!text.empty()) text += ",";
    text += end - i == 1 ? fmt::format("{}", numbers[i]) : fmt::format("{}-{}", numbers[i], numbers[end - 1]);
    i = end;
  }
  return text;
}

std::vector<std::pair<uint32_t, std::vector<uint32_t>>> arrays_of(const std::vector<uint32_t>& shards,
                                                                  uint32_t tasks_max) {
  std::vector<std::pair<uint32_t, std::vector<uint32_t>>> arrays;
  for (const uint32_t shard : shards) {
    const uint32_t offset = (shard - 1) / tasks_max * tasks_max;
    if (arrays.empty() || arrays.back().first != offset) arrays.push_back({offset, {}});
    arrays.back().second.push_back(shard - offset);
  }
  return arrays;
}

uint32_t tasks_max_of(std::string_view configuration) {
  constexpr std::string_view kKey = "MaxArraySize";
  const size_t at = configuration.find(kKey);
  if (at == std::string_view::npos) return kTasksMaxUsual;
  std::string_view rest = configuration.substr(at + kKey.size());
  rest.remove_prefix(std::min(rest.find_first_of("0123456789"), rest.size()));
  rest = rest.substr(0, rest.find_first_not_of("0123456789"));
  uint32_t size = 0;
  return number_of(rest, &size) && size >= 2 ? size - 1 : kTasksMaxUsual;
}

std::map<uint32_t, TaskState> queue_of(const Jobs& jobs, std::string_view printed) {
  std::map<uint32_t, TaskState> states;
  for (size_t from = 0; from < printed.size();) {
    const size_t end = std::min(printed.find('\n', from), printed.size());
    const std::vector<std::string_view> fields = fields_of(printed.substr(from, end - from));
    from = end + 1;
    uint64_t id = 0;
    if (fields.size() < 5 || !number_of(fields[0], &id)) continue;
    const auto job = std::ranges::find_if(jobs.jobs, [id](const Job& one) { return one.id == id; });
    uint32_t task = 0;
    if (job == jobs.jobs.end() || (!job->last && !number_of(fields[1], &task))) continue;
    states[job->last ? 0 : job->offset + task] = {
        .state = std::string(fields[2]), .node = std::string(fields[3]), .reason = std::string(fields[4])};
  }
  return states;
}

}  // namespace sluice::fleet
