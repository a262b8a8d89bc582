// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/tree_name.h"

#include <filesystem>
#include <string>

#include "tools/cli/target.h"

namespace sluice::cli {
namespace {

enum class Place : uint8_t { kUnknown, kNothing, kDirectory, kOther };

// What stands there: at `node`, or at this host where that is empty.
Place look(api::Client& client, const std::string& node, const std::string& path) {
  if (node.empty()) {
    std::error_code ignored;
    const std::filesystem::file_status there = std::filesystem::symlink_status(path, ignored);
    if (there.type() == std::filesystem::file_type::not_found) return Place::kNothing;
    if (!std::filesystem::status_known(there)) return Place::kUnknown;
    return std::filesystem::is_directory(there) ? Place::kDirectory : Place::kOther;
  }
  const auto there = client.look_at(node, path);
  if (!there) return Place::kUnknown;
  if (!there->has_value()) return Place::kNothing;
  return (*there)->type() == api::NameEntry::DIRECTORY ? Place::kDirectory : Place::kOther;
}

// The directory that the name is in, also through a link.
bool may_be_made(api::Client& client, const std::string& node, const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos || slash + 1 == path.size()) return false;
  if (look(client, node, path) != Place::kNothing) return false;
  std::error_code ignored;
  return node.empty() ? std::filesystem::is_directory(path.substr(0, slash + 1), ignored)
                      : look(client, node, path.substr(0, slash)) == Place::kDirectory;
}

template <typename Request>
void name_tree_of(api::Client& client, const std::string& from, const std::string& to, Request* request) {
  // With --mkdir the destination is made for the tree to go into.
  if (request->sources_size() != 1 || request->options().names_size() != 0 || request->options().mkdir())
    return;
  const std::string& source = request->sources(0);
  if (api::is_memory_source(source) || source.ends_with('/') ||
      api::is_null_destination(request->destination()))
    return;
  // Of this host first: it answers at once.
  const auto comes = [&] { return look(client, from, source) == Place::kDirectory; };
  const auto fits = [&] { return may_be_made(client, to, request->destination()); };
  if (to.empty() ? !fits() || !comes() : !comes() || !fits()) return;
  request->set_sources(0, source + "/");
  request->mutable_options()->set_mkdir(true);
  request->mutable_options()->set_top(true);
}

}  // namespace

void name_tree(api::Client& client, api::TransferRequest* request) {
  if (auto* const send = std::get_if<api::SendRequest>(request))
    return name_tree_of(client, send->from(), send->peer(), send);
  auto& get = std::get<api::GetRequest>(*request);
  name_tree_of(client, get.peer(), "", &get);
}

}  // namespace sluice::cli
