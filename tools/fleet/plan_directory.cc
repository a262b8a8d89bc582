// SPDX-License-Identifier: Apache-2.0
#include "tools/fleet/plan_directory.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <charconv>

#include "dataplane/base/text.h"

namespace sluice::fleet {
namespace {

constexpr char kPlanSchema[] = "sluice.fleet_plan.v1";

Json places_json(const std::vector<Place>& places) {
  Json all = Json::array();
  for (const Place& place : places) all.push_back({{"node", place.node}, {"path", place.path}});
  return all;
}

std::vector<Place> places_of(const Json& all) {
  std::vector<Place> places;
  for (const Json& one : all) places.push_back({.node = one.at("node"), .path = one.at("path")});
  return places;
}

// Throws where a member is missing or of another type.
Plan plan_of(const Json& object) {
  Plan plan;
  plan.dataset = object.at("dataset");
  plan.made = object.at("made");
  plan.at = object.at("at") == "to" ? Side::kTo : Side::kFrom;
  plan.from = places_of(object.at("from"));
  plan.to = places_of(object.at("to"));
  plan.sync = object.at("sync");
  plan.removes = object.at("delete");
  plan.emit = object.at("emit");
  plan.node_directory = object.at("node_directory");
  plan.name_cost_bytes = object.at("name_cost_bytes");
  plan.names = object.at("names");
  plan.bytes = object.at("bytes");
  plan.directories = object.at("directories");
  plan.left_out = object.at("left_out");
  plan.problems = object.at("problems");
  const Json& balance = object.at("balance");
  plan.worst_over_mean = balance.at("worst_over_mean");
  plan.largest = balance.at("largest");
  plan.largest_bytes = balance.at("largest_bytes");
  plan.largest_in_shards = balance.at("largest_in_shards");
  for (const Json& one : object.at("shards"))
    plan.shards.push_back({.names = one.at("names"),
                           .bytes = one.at("bytes"),
                           .sessions = one.at("sessions"),
                           .ranges = one.value("ranges", uint32_t{0})});  // plans of before have none
  plan.last_sessions = object.at("last_sessions");
  plan.cut_files = object.value("cut_files", uint32_t{0});
  return plan;
}

}  // namespace

Status make_lease(const std::filesystem::path& directory) {
  std::array<unsigned char, 16> random{};
  if (::getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size()))
    return Error{ErrorCode::kInternal, "the system gave no random bytes"};
  std::string text;
  for (const unsigned char byte : random) text += fmt::format("{:02x}", byte);
  return write_file(directory / "lease", text + "\n", 0600);
}

Result<std::string> lease_name(const std::filesystem::path& directory, uint32_t shard) {
  const Result<std::string> secret = read_file(directory / "lease");
  if (!secret) return secret.error();
  return secret->substr(0, secret->find('\n')) + "." + shard_name(shard);
}

std::string shard_name(uint32_t shard) {
  return shard == 0 ? "shard-last" : fmt::format("shard-{:04}", shard);
}

Result<uint32_t> parse_shard(const Plan& plan, const std::string& word) {
  if (word == "last") return uint32_t{0};
  uint32_t shard = 0;
  const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), shard);
  if (problem == std::errc() && end == word.data() + word.size() && shard >= 1 && shard <= plan.count())
    return shard;
  return Error{ErrorCode::kUsage, fmt::format("{}: no shard of this plan; it has 1 to {}, and 'last'",
                                              base::printable(word), plan.count())};
}

Json plan_json(const Plan& plan) {
  Json shards = Json::array();
  for (uint32_t i = 0; i < plan.count(); ++i) {
    const ShardTotals& one = plan.shards[i];
    shards.push_back({{"shard", i + 1},
                      {"file", shard_name(i + 1) + ".toml"},
                      {"names", one.names},
                      {"bytes", one.bytes},
                      {"sessions", one.sessions},
                      {"ranges", one.ranges}});
  }
  return {{"schema", kPlanSchema},
          {"dataset", plan.dataset},
          {"made", plan.made},
          {"at", plan.at == Side::kTo ? "to" : "from"},
          {"from", places_json(plan.from)},
          {"to", places_json(plan.to)},
          {"sync", plan.sync},
          {"delete", plan.removes},
          {"emit", plan.emit},
          {"node_directory", plan.node_directory},
          {"name_cost_bytes", plan.name_cost_bytes},
          {"names", plan.names},
          {"bytes", plan.bytes},
          {"directories", plan.directories},
          {"left_out", plan.left_out},
          {"problems", plan.problems},
          {"balance",
           {{"worst_over_mean", plan.worst_over_mean},
            {"largest", plan.largest},
            {"largest_bytes", plan.largest_bytes},
            {"largest_in_shards", plan.largest_in_shards}}},
          {"shards", std::move(shards)},
          {"last_sessions", plan.last_sessions},
          {"cut_files", plan.cut_files}};
}

Result<Plan> load_plan(const std::filesystem::path& directory) {
  std::error_code problem;
  const std::filesystem::path file = directory / "plan.json";
  if (!std::filesystem::exists(file, problem))
    return Error{ErrorCode::kConfiguration,
                 base::printable(directory.string()) +
                     ": no plan there (no plan.json); make one with 'sluice fleet plan'"};
  const Result<Json> object = read_json(file, kPlanSchema);
  if (!object) return object.error();
  try {
    Plan plan = plan_of(*object);
    if (!plan.from.empty() && !plan.to.empty() && !plan.shards.empty()) return plan;
  } catch (const Json::exception&) {
  }
  return Error{ErrorCode::kConfiguration,
               base::printable(file.string()) + ": a member is missing or wrong; make the plan again"};
}

}  // namespace sluice::fleet
