// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/tree_name.h"

#include <filesystem>
#include <optional>
#include <string>

#include "tools/cli/target.h"

namespace sluice::cli {
namespace {

enum class There : uint8_t { kNo, kDirectory, kOther };

// Nothing: the peer does not say.
std::optional<There> look(Client& client, const std::string& peer, const std::string& path) {
  api::ListNamesRequest asked;
  asked.set_peer(peer);
  asked.set_path(path);
  asked.set_itself(true);
  std::optional<There> found;
  const Status status = client.list_names(asked, [&found](const api::ListNamesReply& part) {
    for (const api::NameEntry& entry : part.entries()) {
      if (entry.error_code() == static_cast<uint32_t>(ErrorCode::kSourceUnreadable)) found = There::kNo;
      if (entry.error_code() == 0)
        found = entry.type() == api::NameEntry::DIRECTORY ? There::kDirectory : There::kOther;
    }
    return true;
  });
  if (!status)
    return status.error().code == ErrorCode::kSourceUnreadable ? std::optional(There::kNo) : std::nullopt;
  return found;
}

bool is_one_directory(const api::SendRequest& request) {
  if (request.sources_size() != 1 || request.options().names_size() != 0) return false;
  const std::string& source = request.sources(0);
  std::error_code ignored;
  return !is_memory_source(source) && !source.ends_with('/') &&
         std::filesystem::is_directory(std::filesystem::symlink_status(source, ignored));
}

}  // namespace

void name_tree(Client& client, TransferRequest* request) {
  auto* const send = std::get_if<api::SendRequest>(request);
  // With --mkdir the destination is made for the tree to go into.
  if (send == nullptr || send->options().mkdir() || !is_one_directory(*send)) return;
  const std::string& to = send->destination();
  const size_t slash = to.rfind('/');
  if (is_null_destination(to) || slash == std::string::npos || slash + 1 == to.size()) return;
  if (look(client, send->peer(), to) != There::kNo) return;
  if (look(client, send->peer(), to.substr(0, slash)) != There::kDirectory) return;
  send->set_sources(0, send->sources(0) + "/");
  send->mutable_options()->set_mkdir(true);
  send->mutable_options()->set_top(true);
}

}  // namespace sluice::cli
