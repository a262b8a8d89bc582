// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/two_nodes.h"

#include <fmt/format.h>

#include <system_error>

#include "control/client/requests.h"
#include "tools/cli/format.h"
#include "tools/cli/target.h"

namespace sluice::cli {
namespace {

// A word that names a path at a node, as scp has it: a colon, and no slash before it.
std::optional<Target> at_node(const std::string& word, const KnowsNode& knows) {
  if (api::is_memory_source(word) || api::is_null_destination(word)) return std::nullopt;
  const Result<Target> target = split_target(word);
  if (!target || !knows(target->node)) return std::nullopt;
  return *target;
}

bool is_here(const std::string& word, const std::filesystem::path& working_directory) {
  std::error_code ignored;
  return std::filesystem::exists(std::filesystem::symlink_status(working_directory / word, ignored));
}

// A word that could be NODE:PATH, of a node that nobody knows, is a file that is called so.
Status check_file_here(const std::string& word, const std::filesystem::path& working_directory) {
  if (api::is_memory_source(word) || api::is_null_destination(word)) return {};
  const Result<Target> target = split_target(word);
  if (!target || is_here(word, working_directory)) return {};
  return usage(fmt::format(
      "'{}': there is no such file here, and {} is no peer of this node ('sluice node show'); name "
      "a file of this node by its path",
      printable(word), target->node));
}

Status check_files_here(const std::vector<std::string>& arguments, const KnowsNode& knows,
                        const std::filesystem::path& working_directory) {
  for (auto word = arguments.begin(); word + 1 != arguments.end(); ++word) {
    if (at_node(*word, knows)) continue;
    if (const Status here = check_file_here(*word, working_directory); !here) return here;
  }
  return {};
}

Status check_source(const std::string& word, const Target& target, const std::string& node) {
  if (target.path.empty())
    return usage(fmt::format("'{}' has no path; write {}:EXPORT/FILE", printable(word), target.node));
  if (!is_utf8(target.path))
    return usage(fmt::format("'{}' is not valid UTF-8; rename the file", printable(word)));
  if (node.empty() || node == target.node) return {};
  return usage(fmt::format("sources on two nodes, {} and {}; send them one by one", node, target.node));
}

}  // namespace

Result<std::optional<api::SendRequest>> two_nodes(const std::vector<std::string>& arguments, bool sends,
                                                  const KnowsNode& knows,
                                                  const std::filesystem::path& working_directory) {
  using None = std::optional<api::SendRequest>;
  if (arguments.size() < 2) return None();
  const std::optional<Target> to = at_node(arguments.back(), knows);
  if (!to) return None();
  api::SendRequest request;
  for (size_t i = 0; i + 1 < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const std::optional<Target> from = at_node(word, knows);
    if (!from || (sends && from->node == to->node)) {
      if (request.from().empty()) {
        const Status here = sends ? check_files_here(arguments, knows, working_directory) : Status();
        if (!here) return here.error();
        return None();
      }
      return usage(fmt::format("'{}' is not at {}, as the source before it is; send them one by one",
                               printable(word), request.from()));
    }
    if (sends && is_here(word, working_directory))
      return usage(fmt::format("'{}' is a file here, and {} is a node: for the file write ./{}",
                               printable(word), from->node, printable(word)));
    if (i != 0 && request.from().empty()) return None();
    if (const Status status = check_source(word, *from, request.from()); !status) return status.error();
    request.set_from(from->node);
    const Result<std::string> path =
        api::is_memory_source(from->path) ? memory_source(from->path) : Result<std::string>(from->path);
    if (!path) return path.error();
    request.add_sources(*path);
  }
  if (to->path.empty())
    return usage(
        fmt::format("'{}' has no path; write {}:EXPORT/PATH", printable(arguments.back()), to->node));
  if (request.from() == to->node)
    return usage(fmt::format("{} is both source and destination: copy the files there", to->node));
  request.set_peer(to->node);
  request.set_destination(to->path);
  return None(std::move(request));
}

Status check_destination_here(const std::string& word, const KnowsNode& knows,
                              const std::filesystem::path& working_directory) {
  const Result<Target> target = split_target(word);
  const size_t slash = word.find('/');
  if (!target || slash == std::string::npos || api::is_null_destination(word)) return {};
  const std::string directory = word.substr(0, slash);
  if (is_here(directory, working_directory) || knows(target->node)) return {};
  return usage(fmt::format(
      "'{}': there is no directory '{}' here, and {} is no peer of this node ('sluice node show'); name a "
      "place at this node by its path",
      printable(word), printable(directory), target->node));
}

}  // namespace sluice::cli
