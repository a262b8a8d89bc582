// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/config/apart.h"

#include <fcntl.h>

#include <algorithm>
#include <string>

#include "dataplane/base/config/values.h"
#include "dataplane/base/text.h"
#include "dataplane/base/unique_fd.h"

namespace sluice::config {
namespace {

namespace fs = std::filesystem;

fs::path real(const fs::path& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  const fs::path found = fs::weakly_canonical(absolute, error);
  return error ? normal(absolute) : found;
}

// Where an export is, through links. Its file system is not asked: to open a path so does not, and it may
// hang.
fs::path opened(const fs::path& path) {
  const UniqueFd fd(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  std::error_code error;
  fs::path found = fd ? fs::read_symlink("/proc/self/fd/" + std::to_string(fd.get()), error) : fs::path();
  return !fd || error ? normal(path) : found;
}

bool holds(const fs::path& outer, const fs::path& inner) {
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

}  // namespace

Status check_apart(const Node& node, Paths exports) {
  const fs::path own[] = {real(node.directory), real(node.state()), node.directory, node.state()};
  const fs::path closed[] = {real(node.identity_dir()), real(node.trusted_dir()), real(node.run_dir())};
  for (const Export& item : node.exports) {
    const fs::path path = exports == Paths::kFollowed ? opened(item.path) : normal(item.path);
    const auto* const held =
        std::ranges::find_if(own, [&](const fs::path& each) { return holds(path, each); });
    const bool within = std::ranges::any_of(closed, [&](const fs::path& each) { return holds(each, path); });
    if (held == std::end(own) && !within) continue;
    const fs::path& node_path = within ? own[0] : *held;
    return Error{ErrorCode::kConfiguration,
                 "export " + item.name + ": " + base::printable(item.path.string()) +
                     (within ? " lies in this node's own directory " : " holds what this node keeps in ") +
                     base::printable(node_path.string()) +
                     ", with its private key, whom it trusts and its journal: peers could read or change "
                     "them; export another directory, or move the node"};
  }
  return {};
}

}  // namespace sluice::config
