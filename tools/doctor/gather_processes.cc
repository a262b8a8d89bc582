// The daemons of a node as the kernel sees them, and who asks.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <sstream>

#include "control/client/way.h"
#include "dataplane/base/unique_fd.h"
#include "tools/doctor/accounts.h"
#include "tools/doctor/gather.h"

namespace sluice::doctor {
namespace {

namespace fs = std::filesystem;

// Who listens there; 0: nobody, or nobody of whom this user may know.
int listener_of(const fs::path& path, int kind) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.native().size() >= sizeof address.sun_path) return 0;
  std::memcpy(address.sun_path, path.c_str(), path.native().size());
  const UniqueFd socket(::socket(AF_UNIX, kind | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket || ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return 0;
  ucred peer{};
  socklen_t bytes = sizeof peer;
  return ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 ? peer.pid : 0;
}

// "Max open files            1024                 524288               files": the soft one, which is in
// force.
uint64_t limit_in(const std::string& line, std::string_view name) {
  std::istringstream words(line.substr(name.size()));
  std::string soft;
  words >> soft;
  uint64_t value = UINT64_MAX;  // "unlimited"
  std::from_chars(soft.data(), soft.data() + soft.size(), value);
  return value;
}

// What cannot be looked at may be open. A sluice-control that runs holds SQLite's locks on its journal.
bool is_open_journal(const fs::path& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!file) return errno != ENOENT && errno != ENOTDIR;
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return ::fcntl(file.get(), F_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

}  // namespace

std::optional<ProcessFacts> gather_process(const std::string& program, int pid, const fs::path& root) {
  std::ifstream limits(root / "proc" / std::to_string(pid) / "limits");
  if (pid <= 0 || !limits) return std::nullopt;
  ProcessFacts facts{.program = program, .pid = pid};
  constexpr std::string_view kFiles = "Max open files";
  constexpr std::string_view kMemory = "Max locked memory";
  for (std::string line; std::getline(limits, line);) {
    if (line.starts_with(kFiles)) facts.nofile = limit_in(line, kFiles);
    if (line.starts_with(kMemory)) facts.memlock_bytes = limit_in(line, kMemory);
  }
  return facts;
}

void gather_processes(const config::Node& node, Facts* facts) {
  for (const fs::path& socket : api::sockets_of(node)) {
    facts->control_process = gather_process("sluice-control", listener_of(socket, SOCK_STREAM), "/");
    if (facts->control_process) break;
  }
  if (!facts->control_process) facts->listen_problem = gather_listen_problem(node);
  facts->daemon.journal_lost = facts->daemon.problem.empty() && !is_open_journal(node.journal());
  if (!facts->daemon.attached) return;
  facts->dataplane_process =
      gather_process("sluice-dataplane", listener_of(node.dataplane_socket(), SOCK_SEQPACKET), "/");
}

LookerFacts gather_looker(const fs::path& directory) {
  LookerFacts facts{.user = user_name(::geteuid()), .owner = {}};
  struct stat info {};
  bool found = false;
  // The nearest directory that can be seen, where the node's own cannot.
  for (fs::path at = directory / "identity"; !found && !at.empty(); at = at.parent_path()) {
    found = ::stat(at.c_str(), &info) == 0;
    if (at == at.parent_path()) break;
  }
  if (!found) return facts;
  facts.owner = user_name(info.st_uid);
  facts.stranger = ::geteuid() != 0 && ::geteuid() != info.st_uid;
  return facts;
}

}  // namespace sluice::doctor
