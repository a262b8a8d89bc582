// Other nodes of this host, as their processes show them, and whether the port of this one's sluice-control
// is free.
// SPDX-License-Identifier: Apache-2.0
#include <netdb.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>

#include "control/client/way.h"
#include "dataplane/base/read_rest.h"
#include "dataplane/base/unique_fd.h"
#include "tools/doctor/accounts.h"
#include "tools/doctor/gather.h"

namespace sluice::doctor {
namespace {

namespace fs = std::filesystem;

// Words with a zero behind each, as the kernel shows arguments and environments. Nothing: they may not be
// seen.
std::optional<std::vector<std::string>> words_in(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  const std::string text = base::read_rest(in);
  if (in.bad() || text.empty()) return std::nullopt;  // also of a process that has ended meanwhile
  std::vector<std::string> words;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\0', at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

// Behind "--node DIR", "--node=DIR" or, in an environment, "SLUICE_NODE=DIR"; empty: it is not there.
std::string value_of(const std::vector<std::string>& words, const std::string& name) {
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == name && i + 1 < words.size()) return words[i + 1];
    if (words[i].starts_with(name + "=")) return words[i].substr(name.size() + 1);
  }
  return "";
}

// Empty: this user may not know.
fs::path node_directory_of(const fs::path& process, const std::vector<std::string>& arguments) {
  fs::path directory = value_of(arguments, "--node");
  if (directory.empty()) {
    const auto environment = words_in(process / "environ");
    if (!environment || environment->empty()) return {};
    directory = value_of(*environment, "SLUICE_NODE");
    if (directory.empty()) directory = api::kUsualNode;
  }
  std::error_code problem;
  if (directory.is_relative()) directory = fs::read_symlink(process / "cwd", problem) / directory;
  return problem ? fs::path() : fs::weakly_canonical(directory, problem);
}

bool is_dataplane(const std::vector<std::string>& arguments) {
  return !arguments.empty() && fs::path(arguments[0]).filename() == "sluice-dataplane";
}

std::optional<uid_t> uid_of(const fs::path& process) {
  std::ifstream status(process / "status");
  for (std::string line; std::getline(status, line);) {
    std::istringstream words(line);
    std::string name;
    uid_t uid = 0;
    if (words >> name && name == "Uid:" && words >> uid) return uid;
  }
  return std::nullopt;
}

}  // namespace

std::vector<OtherNode> gather_other_nodes(const fs::path& own, const fs::path& root) {
  std::vector<OtherNode> others;
  std::error_code problem;
  const fs::path own_canonical = fs::weakly_canonical(own, problem);
  struct stat own_info {};
  ::stat(own.c_str(), &own_info);
  const fs::path own_net = fs::read_symlink(root / "proc/self/ns/net", problem);
  for (const auto& process : fs::directory_iterator(root / "proc", problem)) {
    const auto arguments = words_in(process.path() / "cmdline");
    const auto uid = uid_of(process.path());
    if (!arguments || !uid || !is_dataplane(*arguments)) continue;
    const fs::path net = fs::read_symlink(process.path() / "ns/net", problem);
    if (!problem && net != own_net) continue;
    const fs::path directory = node_directory_of(process.path(), *arguments);
    if (directory == own_canonical || (directory.empty() && *uid == own_info.st_uid)) continue;
    OtherNode other{.directory = directory.string(), .user = user_name(*uid), .node = {}};
    if (!directory.empty()) {
      if (const auto node = config::load(directory)) other.node = *node;
    }
    others.push_back(std::move(other));
  }
  return others;
}

std::string gather_listen_problem(const config::Node& node) {
  const auto where = config::parse_host_port(node.listen);
  if (node.calls_only() || !where) return "";
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICSERV | AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(where->host.c_str(), std::to_string(where->port).c_str(), &hints, &found) != 0) return "";
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  const UniqueFd socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int yes = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (!socket || ::bind(socket.get(), found->ai_addr, found->ai_addrlen) == 0) return "";
  return std::strerror(errno);
}

}  // namespace sluice::doctor
