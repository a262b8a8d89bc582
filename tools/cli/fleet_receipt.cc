// sluice fleet receipt: one list of digests, and one signed statement of the whole dataset.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "control/identity/identity.h"
#include "control/identity/sha256.h"
#include "control/identity/signature.h"
#include "dataplane/base/counted.h"
#include "dataplane/base/utc.h"
#include "tools/cli/fleet.h"
#include "tools/cli/format.h"
#include "tools/cli/receipt.h"
#include "tools/fleet/tries.h"

namespace sluice::cli {
namespace {

std::string sha256(const std::string& text) {
  std::string hex;
  for (const char byte : identity::sha256_of(text))
    hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return hex;
}

// The files of a folder in order, with what they hold.
Result<std::vector<std::pair<std::string, std::string>>> files_of(const std::filesystem::path& folder) {
  std::vector<std::pair<std::string, std::string>> files;
  std::error_code problem;
  for (std::filesystem::directory_iterator at(folder, problem);
       !problem && at != std::filesystem::directory_iterator(); at.increment(problem)) {
    if (at->path().extension() == ".tmp") continue;
    auto text = fleet::read_file(at->path());
    if (!text) return text.error();
    files.emplace_back(at->path().filename().string(), std::move(*text));
  }
  if (problem)
    return Error{ErrorCode::kConfiguration,
                 printable(folder.string()) + ": cannot be read: " + problem.message()};
  std::ranges::sort(files);
  return files;
}

// All lines of all shards, in their order.
Result<std::string> write_digests(const std::filesystem::path& directory, const fleet::Plan& plan) {
  const auto files = files_of(directory / "digests");
  if (!files) return files.error();
  std::string text = fmt::format(
      "# Digests of the dataset {}: KIND:DIGEST BYTES NAMES DESTINATION. Small files travel in packs, a line "
      "each.\n",
      printable(plan.dataset));
  for (const auto& [name, lines] : *files) text += lines;
  if (Status status = fleet::write_file(directory / "digests.txt", text); !status) return status.error();
  return text;
}

Result<api::Json> sessions_of(const std::filesystem::path& directory) {
  const auto files = files_of(directory / "receipts");
  if (!files) return files.error();
  api::Json sessions = api::Json::array();
  for (const auto& [name, text] : *files) {
    const auto receipt = check_receipt(text);
    if (!receipt)
      return Error{receipt.error().code,
                   printable((directory / "receipts" / name).string()) + ": " + receipt.error().message};
    sessions.push_back({{"file", name},
                        {"session", receipt->statement.value("session", api::Json())},
                        {"signer", receipt->signer},
                        {"bytes", receipt->statement.value("bytes", api::Json())},
                        {"sha256", sha256(text)}});
  }
  return sessions;
}

}  // namespace

Result<int> fleet_receipt(const Context& context, const FleetJobFlags& flags) {
  const std::filesystem::path directory = fleet_directory(context, flags.dataset);
  const auto plan = fleet::load_plan(directory);
  if (!plan) return plan.error();
  const auto tries = fleet::load_tries(directory);
  if (!tries) return tries.error();
  uint64_t found = 0;
  uint64_t tried = 0;
  for (uint32_t shard = 0; shard <= plan->count(); ++shard) {
    const auto own = tries->find(shard);
    const fleet::Try* const best = own == tries->end() ? nullptr : fleet::latest(own->second);
    if (best == nullptr || best->state != fleet::Try::State::kSucceeded)
      return Error{ErrorCode::kUsage,
                   fmt::format("{} has not succeeded: there are receipts of what has succeeded",
                               fleet::shard_name(shard))};
    found += best->names_found;
    tried += own->second.size();
  }
  const auto digests = write_digests(directory, *plan);
  if (!digests) return digests.error();
  auto sessions = sessions_of(directory);
  if (!sessions) return sessions.error();
  const auto self = identity::load(context.node_directory());
  if (!self) return self.error();
  api::Json object = plan_json(*plan);
  const api::Json statement = {{"statement", "sluice.fleet_receipt.v1"},
                               {"dataset", plan->dataset},
                               {"node", {{"name", self->name}, {"fingerprint", self->fingerprint}}},
                               {"from", object["from"]},
                               {"to", object["to"]},
                               {"planned", plan->made},
                               {"signed", base::utc_text(unix_now_ns())},
                               {"bytes", plan->bytes},
                               {"names", {{"total", plan->names}, {"found_there", found}}},
                               {"directories", plan->directories},
                               {"left_out", plan->left_out},
                               {"shards", plan->count()},
                               {"tries", tried},
                               {"digests_sha256", sha256(*digests)},
                               {"sessions", std::move(*sessions)}};
  const std::string text = statement.dump(1, ' ', false, api::Json::error_handler_t::replace);
  const auto signature = identity::sign(*self, std::string(receipt::kPurpose) + text);
  if (!signature) return signature.error();
  context.environment.out << api::to_line({{"schema", receipt::kSchema},
                                           {"statement", text},
                                           {"signature", *signature},
                                           {"certificate", self->certificate_pem}});
  return 0;
}

}  // namespace sluice::cli
