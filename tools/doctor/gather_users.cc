// Users of this host, and of peers, as the host has it.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "control/identity/user_map.h"
#include "dataplane/base/text.h"
#include "dataplane/base/unique_fd.h"
#include "tools/doctor/accounts.h"
#include "tools/doctor/gather.h"

namespace sluice::doctor {

namespace {

// 0, or an errno. Whoever answers hears nothing, and hangs up.
int reason_of_silence(const std::filesystem::path& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.native().size() >= sizeof address.sun_path) return ENAMETOOLONG;
  std::memcpy(address.sun_path, socket.c_str(), socket.native().size());
  const UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd || ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return errno;
  return 0;
}

constexpr size_t kUsersLookedAt = 200;  // a directory of users on the network may be asked for each

// Why no file can be opened as this user; empty: it can. As control says it (control/users/identity.h).
std::string why_not(const std::string& name, const config::Node& node, gid_t group) {
  const std::optional<Account> account = account_of(name);
  if (!account) return "this host has no such user";
  if (account->uid < static_cast<uid_t>(node.users_uid_min))
    return fmt::format("user {} is below [control] users_uid_min = {}", account->uid, node.users_uid_min);
  if (std::ranges::count(groups_of(*account), group) != 0) return "";
  return fmt::format("is no member of group {} ([control] users_group)", node.users_group);
}

// Users whom the map names, and as whom no file can be opened.
std::vector<std::string> nobody_in(const identity::UserMap& map, const config::Node& node) {
  std::vector<std::string> all;
  const std::optional<gid_t> group = gid_of(node.users_group);
  if (!group) return all;  // that is told already, or nobody can be looked up here
  auto named = map.named_here();
  named.resize(std::min(named.size(), kUsersLookedAt));
  for (const auto& [name, line] : named) {
    const std::string why = why_not(name, node, *group);
    if (!why.empty())
      all.push_back(fmt::format("{}:{}: {}: {}", map.origin(), line, base::printable(name), why));
  }
  return all;
}

}  // namespace

std::optional<UsersFacts> gather_users(const config::Node& node) {
  if (node.users_group.empty()) return std::nullopt;
  UsersFacts facts;
  if (const int reason = reason_of_silence(node.users_helper_socket()); reason != 0)
    facts.helper_problem = std::strerror(reason);
  if (node.users_map_file.empty()) return facts;
  const auto map = identity::UserMap::load(node.users_map_file);
  if (!map) {
    facts.map_problem = map.error().message;
    return facts;
  }
  facts.map_lines = (*map)->lines();
  facts.map_nobody = nobody_in(**map, node);
  return facts;
}

}  // namespace sluice::doctor
