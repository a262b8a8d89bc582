// SPDX-License-Identifier: Apache-2.0
#include "tools/fleet/tries.h"

#include <fmt/format.h>

#include <algorithm>

#include "dataplane/base/text.h"
#include "tools/fleet/plan_directory.h"

namespace sluice::fleet {
namespace {

constexpr char kTrySchema[] = "sluice.fleet_try.v1";
constexpr size_t kFailedKept = 100;

Try::State state_of(const std::string& word) {
  for (const auto state :
       {Try::State::kRunning, Try::State::kSucceeded, Try::State::kFailed, Try::State::kCancelled}) {
    if (state_word(state) == word) return state;
  }
  return Try::State::kFailed;
}

template <typename Number>
uint64_t sum(const std::vector<TrySession>& sessions, Number number) {
  uint64_t total = 0;
  for (const TrySession& each : sessions) total += each.*number;
  return total;
}

}  // namespace

uint64_t Try::bytes_done() const { return bytes_found + sum(sessions, &TrySession::bytes_done); }
uint64_t Try::bytes_sent() const { return sum(sessions, &TrySession::bytes_sent); }
// Sessions count the directories that names are in, too.
uint64_t Try::names_done() const {
  const uint64_t done = names_found + sum(sessions, &TrySession::names_done);
  return shard == 0 ? done : std::min(done, names_total);
}

std::string_view state_word(Try::State state) {
  switch (state) {
    case Try::State::kRunning:
      return "running";
    case Try::State::kSucceeded:
      return "succeeded";
    case Try::State::kFailed:
      return "failed";
    case Try::State::kCancelled:
      return "cancelled";
  }
  return "failed";
}

Json try_json(const Try& one) {
  Json sessions = Json::array();
  for (const TrySession& each : one.sessions) {
    sessions.push_back({{"id", each.id},
                        {"state", each.state},
                        {"bytes", each.bytes},
                        {"bytes_done", each.bytes_done},
                        {"bytes_sent", each.bytes_sent},
                        {"names_done", each.names_done}});
  }
  Json failed = Json::array();
  for (size_t i = 0; i < std::min(one.failed.size(), kFailedKept); ++i)
    failed.push_back({{"path", one.failed[i].first}, {"reason", one.failed[i].second}});
  return {{"schema", kTrySchema},
          {"shard", one.shard},
          {"epoch", one.epoch},
          {"node", one.node},
          {"host", one.host},
          {"job", one.job},
          {"began_unix_ns", one.began_unix_ns},
          {"updated_unix_ns", one.updated_unix_ns},
          {"state", state_word(one.state)},
          {"exit_code", one.exit_code},
          {"error", one.error},
          {"names_total", one.names_total},
          {"bytes_total", one.bytes_total},
          {"names_found", one.names_found},
          {"bytes_found", one.bytes_found},
          {"sessions", std::move(sessions)},
          {"rate_bps", one.rate_bps},
          {"waiting_for", one.waiting_for},
          {"verdict", one.verdict},
          {"names_failed", one.names_failed},
          {"failed", std::move(failed)},
          {"notes", one.notes}};
}

Result<Try> try_of(const Json& object) {
  try {
    Try one;
    one.shard = object.at("shard");
    one.epoch = object.at("epoch");
    one.node = object.at("node");
    one.host = object.at("host");
    one.job = object.at("job");
    one.began_unix_ns = object.at("began_unix_ns");
    one.updated_unix_ns = object.at("updated_unix_ns");
    one.state = state_of(object.at("state"));
    one.exit_code = object.at("exit_code");
    one.error = object.at("error");
    one.names_total = object.at("names_total");
    one.bytes_total = object.at("bytes_total");
    one.names_found = object.at("names_found");
    one.bytes_found = object.at("bytes_found");
    for (const Json& each : object.at("sessions")) {
      one.sessions.push_back({.id = each.at("id"),
                              .state = each.at("state"),
                              .bytes = each.at("bytes"),
                              .bytes_done = each.at("bytes_done"),
                              .bytes_sent = each.at("bytes_sent"),
                              .names_done = each.at("names_done")});
    }
    one.rate_bps = object.at("rate_bps");
    one.waiting_for = object.at("waiting_for");
    one.verdict = object.at("verdict");
    one.names_failed = object.at("names_failed");
    for (const Json& each : object.at("failed")) one.failed.emplace_back(each.at("path"), each.at("reason"));
    for (const Json& each : object.at("notes")) one.notes.push_back(each);
    return one;
  } catch (const Json::exception&) {
    return Error{ErrorCode::kConfiguration, "a file in 'tries' was changed, or is of another version"};
  }
}

std::filesystem::path try_file(const std::filesystem::path& plan, uint32_t shard, uint64_t epoch) {
  return plan / "tries" / fmt::format("{}.{}.json", shard_name(shard), epoch);
}

Status write_try(const std::filesystem::path& plan, const Try& one) {
  return write_json(try_file(plan, one.shard, one.epoch), try_json(one));
}

namespace {

// Files of `tries` whose name begins so.
Result<std::map<uint32_t, std::vector<Try>>> load_named(const std::filesystem::path& plan,
                                                        const std::string& prefix) {
  std::map<uint32_t, std::vector<Try>> all;
  std::error_code problem;
  std::filesystem::directory_iterator at(plan / "tries", problem);
  if (problem)
    return Error{ErrorCode::kConfiguration,
                 base::printable((plan / "tries").string()) + ": cannot be read: " + problem.message()};
  for (; !problem && at != std::filesystem::directory_iterator(); at.increment(problem)) {
    const std::string name = at->path().filename().string();
    if (!name.starts_with(prefix) || !name.ends_with(".json")) continue;
    const Result<Json> object = read_json(at->path(), kTrySchema);
    if (!object) continue;
    const Result<Try> one = try_of(*object);
    if (one) all[one->shard].push_back(*one);
  }
  for (auto& [shard, tries] : all)
    std::ranges::sort(tries, [](const Try& one, const Try& other) { return one.epoch < other.epoch; });
  return all;
}

}  // namespace

Result<std::map<uint32_t, std::vector<Try>>> load_tries(const std::filesystem::path& plan) {
  return load_named(plan, "shard-");
}

std::vector<Try> load_tries_of(const std::filesystem::path& plan, uint32_t shard) {
  const auto all = load_named(plan, shard_name(shard) + ".");
  const auto found = all ? all->find(shard) : std::map<uint32_t, std::vector<Try>>::const_iterator();
  return all && found != all->end() ? found->second : std::vector<Try>();
}

const Try* latest(const std::vector<Try>& tries) {
  const auto done =
      std::ranges::find_if(tries, [](const Try& one) { return one.state == Try::State::kSucceeded; });
  if (done != tries.end()) return &*done;
  return tries.empty() ? nullptr : &tries.back();
}

}  // namespace sluice::fleet
