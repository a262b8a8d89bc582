// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/target.h"

#include <algorithm>

#include "control/client/requests.h"
#include "dataplane/base/config/config.h"
#include "tools/cli/format.h"

namespace sluice::cli {
namespace {

std::string quoted(std::string_view text) { return "'" + printable(text) + "'"; }

// "beta:x" where `node` is beta: somebody took the other direction.
bool is_of_node(std::string_view text, std::string_view node) {
  return text.size() > node.size() && text.starts_with(node) && text[node.size()] == ':';
}

// The API's strings are UTF-8; a name that is not could not travel.
Status check_text(std::string_view text) {
  if (text.empty()) return usage("an empty path; name a file");
  if (!is_utf8(text)) return usage(quoted(text) + " is not valid UTF-8; rename the file");
  return {};
}

}  // namespace

Result<std::string> memory_source(std::string_view text) {
  const auto bytes = config::parse_size(text.substr(api::kMemorySource.size()));
  if (!bytes) return usage(quoted(text) + ": " + bytes.error().message);
  return std::string(api::kMemorySource) + std::to_string(*bytes);
}

Result<uint64_t> rate_option(const std::string& flag, std::string_view text, const options::Option& option) {
  const auto rate_bps = config::parse_rate(text);
  if (!rate_bps) return usage(flag + ": " + rate_bps.error().message);
  if (const Status possible = option.check(static_cast<int64_t>(*rate_bps), flag); !possible)
    return possible.error();
  return *rate_bps;
}

Result<Target> parse_target(std::string_view text) {
  if (auto ok = check_text(text); !ok) return ok.error();
  auto target = split_target(text);
  if (target && target->path.empty()) {
    return usage(quoted(text) + " has no path; write " + target->node + ":EXPORT/FILE or " + target->node +
                 ":/ABSOLUTE/FILE");
  }
  return target;
}

Result<Target> split_target(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon == std::string_view::npos || !config::valid_node_name(text.substr(0, colon))) {
    return usage(quoted(text) + " is not NODE:PATH; NODE is a name that 'sluice node trust' was given");
  }
  Target target{std::string(text.substr(0, colon)), std::string(text.substr(colon + 1))};
  if (api::is_memory_source(text) || api::is_null_destination(text)) {
    return usage(quoted(text) + " names no node; write NODE:" + printable(text));
  }
  return target;
}

Result<std::string> local_path(std::string_view text, const std::filesystem::path& working_directory) {
  if (auto ok = check_text(text); !ok) return ok.error();
  const std::string whole =
      text.front() == '/' ? std::string(text) : working_directory.string() + "/" + std::string(text);
  std::string out;
  std::string_view rest = whole;
  bool directory = false;
  while (!rest.empty()) {
    const size_t slash = rest.find('/');
    const std::string_view part = rest.substr(0, slash);
    rest.remove_prefix(slash == std::string_view::npos ? rest.size() : slash + 1);
    directory = slash != std::string_view::npos || part == "." || part == "..";
    if (part.empty() || part == ".") continue;
    out += '/';
    out += part;
  }
  return directory ? out + "/" : out;
}

Result<api::SendRequest> send_request(const std::vector<std::string>& arguments,
                                      const std::filesystem::path& working_directory) {
  if (arguments.size() < 2) return usage("needs at least one source and NODE:PATH");
  const auto target = parse_target(arguments.back());
  if (!target) {
    return usage(target.error().message + "; to fetch from another node use 'sluice get'");
  }
  api::SendRequest request;
  request.set_peer(target->node);
  request.set_destination(target->path);
  for (size_t i = 0; i + 1 < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (is_of_node(argument, target->node)) {
      return usage(quoted(std::string_view(argument)) +
                   " is at the node that is sent to; to fetch it from there use 'sluice get', or write ./" +
                   printable(argument) + " for a file here");
    }
    auto source =
        api::is_memory_source(argument) ? memory_source(argument) : local_path(argument, working_directory);
    if (!source) return source.error();
    request.add_sources(*source);
  }
  return request;
}

namespace {

Result<std::string> path_at_peer(const std::string& text) {
  return api::is_memory_source(text) ? memory_source(text) : Result<std::string>(text);
}

// Each source says at which node it is: all at one.
Status add_sources_of_node(const std::vector<std::string>& sources, api::GetRequest* request) {
  for (const std::string& source : sources) {
    const auto target = parse_target(source);
    if (!target) return usage(target.error().message + "; to send to another node use 'sluice send'");
    if (!request->peer().empty() && request->peer() != target->node) {
      return usage("sources on two nodes, " + request->peer() + " and " + target->node +
                   "; get them one by one, or with --from if both nodes have the same files");
    }
    request->set_peer(target->node);
    const auto path = path_at_peer(target->path);
    if (!path) return path.error();
    request->add_sources(*path);
  }
  return {};
}

// Each source is at each of these nodes.
Status add_sources_of_nodes(const std::vector<std::string>& sources, const std::vector<std::string>& nodes,
                            api::GetRequest* request) {
  for (auto node = nodes.begin(); node != nodes.end(); ++node) {
    if (!config::valid_node_name(*node))
      return usage("--from: " + quoted(std::string_view(*node)) +
                   " is no name of a node; give those that 'sluice node trust' was given, as in "
                   "--from alpha,beta");
    if (std::find(nodes.begin(), node, *node) != node)
      return usage("--from: names " + *node + " twice; give each node once");
    if (node == nodes.begin()) {
      request->set_peer(*node);
    } else {
      request->add_more_peers(*node);
    }
    for (const std::string& source : sources) {
      if (is_of_node(source, *node))
        return usage(quoted(std::string_view(source)) + " names a node, which --from does already; write " +
                     printable(source.substr(node->size() + 1)));
    }
  }
  for (const std::string& source : sources) {
    if (const Status ok = check_text(source); !ok) return ok;
    const auto path = path_at_peer(source);
    if (!path) return path.error();
    request->add_sources(*path);
  }
  return {};
}

}  // namespace

Result<api::GetRequest> get_request(const std::vector<std::string>& arguments,
                                    const std::vector<std::string>& from,
                                    const std::filesystem::path& working_directory) {
  if (arguments.size() < 2)
    return usage(from.empty() ? "needs at least one NODE:SRC and a local path"
                              : "--from: needs at least one SRC at these nodes and a local path");
  api::GetRequest request;
  const std::vector<std::string> sources(arguments.begin(), arguments.end() - 1);
  const Status added =
      from.empty() ? add_sources_of_node(sources, &request) : add_sources_of_nodes(sources, from, &request);
  if (!added) return added.error();
  if (is_of_node(arguments.back(), request.peer())) {
    return usage(quoted(std::string_view(arguments.back())) +
                 " is at the node that is fetched from, and 'sluice get' stores here; write ./" +
                 printable(arguments.back()) + " for a file of that name");
  }
  auto destination = api::is_null_destination(arguments.back())
                         ? Result<std::string>(arguments.back())
                         : local_path(arguments.back(), working_directory);
  if (!destination) return destination.error();
  request.set_destination(*destination);
  return request;
}

}  // namespace sluice::cli
