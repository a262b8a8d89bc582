// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/run_memory.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <ostream>
#include <utility>
#include <variant>

#include "control/identity/hex.h"
#include "control/identity/node_files.h"
#include "control/identity/sha256.h"
#include "dataplane/base/read_rest.h"
#include "tools/cli/format.h"
#include "tools/cli/state_file.h"

namespace sluice::cli {
namespace {

constexpr size_t kKeyBytes = 8;

std::string transfer_key(const RunTransfer& transfer, const std::filesystem::path& working_directory) {
  std::string text = working_directory.string() + '\0' + transfer.command + '\0';
  const auto request = transfer_request(transfer.direction, transfer.flags, working_directory, nullptr);
  if (request) {
    const auto& options = std::visit(
        [](const auto& one) -> const auto& { return one.options(); }, *request);
    for (const std::string& name : options.names()) text += name + '\0';
  }
  return identity::to_hex(identity::sha256_of(text).substr(0, kKeyBytes));
}

}  // namespace

RunMemory::RunMemory(const Context& context, const std::filesystem::path& origin, const RunFile& file)
    : context_(context) {
  std::map<std::string, int> alike;
  for (const RunTransfer& transfer : file.transfers) {
    const std::string key = transfer_key(transfer, context.environment.working_directory);
    keys_[&transfer] = fmt::format("{}-{}", key, ++alike[key]);
  }
  const auto whole = [&](const std::filesystem::path& path) {
    return (context.environment.working_directory / path).lexically_normal().string();
  };
  const auto state = usual_state_file("run", {whole(context.node_directory()), whole(origin)});
  if (!state) return;
  state_ = *state;
  std::ifstream in(state_, std::ios::binary);
  written_ = base::read_rest(in);
  if (in.bad())
    usable_ =
        Error{ErrorCode::kConfiguration,
              fmt::format("{}, where this command remembers its sessions, cannot be read: {}; remove it if "
                          "they are over",
                          printable(state_.string()), std::strerror(errno))};
  sessions_ = unattended::RunSessions(written_);
}

std::optional<unattended::RunSessions::Session> RunMemory::take(const RunTransfer& transfer) {
  const std::lock_guard lock(mutex_);
  return sessions_.take(keys_.at(&transfer));
}

void RunMemory::began(const RunTransfer& transfer, const std::string& id) {
  const std::lock_guard lock(mutex_);
  sessions_.began(keys_.at(&transfer), id);
  write();
}

void RunMemory::ended(const RunTransfer& transfer) {
  const std::lock_guard lock(mutex_);
  sessions_.ended(keys_.at(&transfer));
  write();
}

void RunMemory::hold(const std::string& id, bool held) {
  const std::lock_guard lock(mutex_);
  if (sessions_.hold(id, held)) write();
}

Status RunMemory::replace(const std::string& text) const {
  if (state_.empty())
    return Error{ErrorCode::kConfiguration, "neither HOME nor STATE_DIRECTORY names a place for that"};
  if (text.empty()) {
    const auto removed = identity::remove_small_file(state_);
    return removed ? Status() : Status(removed.error());
  }
  std::error_code ignored;
  std::filesystem::create_directories(state_.parent_path(), ignored);
  return identity::write_small_file(state_, text, 0600, identity::Replace::kYes);
}

// With the mutex held.
void RunMemory::write() {
  std::string text = sessions_.text();
  if (text == written_) return;
  const Status status = replace(text);
  if (status) written_ = std::move(text);
  if (status || std::exchange(said_, true)) return;
  context_.environment.err << "sluice: the sessions of this run are not remembered, so that a next one would "
                              "not find them: "
                           << printable(status.error().message) << "\n"
                           << std::flush;
}

}  // namespace sluice::cli
