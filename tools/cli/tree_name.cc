// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/tree_name.h"

#include <filesystem>
#include <string>

#include "tools/cli/target.h"

namespace sluice::cli {
namespace {

bool is_directory(api::Client& client, const api::SendRequest& request) {
  const std::string& source = request.sources(0);
  if (!request.from().empty()) {
    const auto there = client.look_at(request.from(), source);
    return there && there->has_value() && (*there)->type() == api::NameEntry::DIRECTORY;
  }
  std::error_code ignored;
  return std::filesystem::is_directory(std::filesystem::symlink_status(source, ignored));
}

bool is_one_directory(api::Client& client, const api::SendRequest& request) {
  if (request.sources_size() != 1 || request.options().names_size() != 0) return false;
  const std::string& source = request.sources(0);
  return !api::is_memory_source(source) && !source.ends_with('/') && is_directory(client, request);
}

}  // namespace

void name_tree(api::Client& client, api::TransferRequest* request) {
  auto* const send = std::get_if<api::SendRequest>(request);
  // With --mkdir the destination is made for the tree to go into.
  if (send == nullptr || send->options().mkdir() || !is_one_directory(client, *send)) return;
  const std::string& to = send->destination();
  const size_t slash = to.rfind('/');
  if (api::is_null_destination(to) || slash == std::string::npos || slash + 1 == to.size()) return;
  const auto there = client.look_at(send->peer(), to);
  if (!there || there->has_value()) return;
  const auto parent = client.look_at(send->peer(), to.substr(0, slash));
  if (!parent || !parent->has_value() || (*parent)->type() != api::NameEntry::DIRECTORY) return;
  send->set_sources(0, send->sources(0) + "/");
  send->mutable_options()->set_mkdir(true);
  send->mutable_options()->set_top(true);
}

}  // namespace sluice::cli
