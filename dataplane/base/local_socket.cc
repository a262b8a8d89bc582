// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/local_socket.h"

#include <grp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

namespace sluice::base {
namespace {

namespace fs = std::filesystem;

// Nothing: there is none of that name, or (*error) it could not be asked for.
std::optional<gid_t> group_id(const std::string& name, int* error) {
  constexpr size_t kBytesMax = 16U << 20;  // of a group with very many members
  struct group found {};
  struct group* result = nullptr;
  std::vector<char> memory(4096);
  while ((*error = ::getgrnam_r(name.c_str(), &found, memory.data(), memory.size(), &result)) == ERANGE &&
         memory.size() < kBytesMax)
    memory.resize(memory.size() * 2);
  return *error == 0 && result != nullptr ? std::optional(found.gr_gid) : std::nullopt;
}

Status cannot(const std::string& what, int error, const std::string& remedy) {
  return Error{ErrorCode::kConfiguration, what + ": " + std::strerror(error) + "; " + remedy};
}

}  // namespace

Status share_socket(const fs::path& socket, const std::string& group, const std::string& key) {
  const std::string remedy = "check who owns " + socket.parent_path().string();
  if (group.empty()) {
    if (::chmod(socket.c_str(), 0600) != 0)
      return cannot("cannot set the mode of " + socket.string(), errno, remedy);
    return {};
  }
  const std::string named = key + " = \"" + group + "\": ";
  int error = 0;
  const std::optional<gid_t> id = group_id(group, &error);
  if (!id && error != 0)
    return cannot(named + "cannot be looked up", error, "try again, or name a local group");
  if (!id)
    return Error{ErrorCode::kConfiguration,
                 named + "there is no such group; make it with: groupadd --system " + group};
  if (::chown(socket.c_str(), static_cast<uid_t>(-1), *id) != 0)
    return cannot(named + "cannot give it " + socket.string(), errno,
                  "the user of this daemon must be a member of the group");
  if (::chmod(socket.c_str(), 0660) != 0)
    return cannot("cannot set the mode of " + socket.string(), errno, remedy);
  struct stat place {};
  if (::stat(socket.parent_path().c_str(), &place) == 0 && place.st_uid == ::geteuid() &&
      (place.st_mode & S_IXOTH) == 0 &&
      ::chmod(socket.parent_path().c_str(), (place.st_mode & 07777) | S_IXGRP | S_IXOTH) != 0)
    return cannot("cannot set the mode of " + socket.parent_path().string(), errno, remedy);
  return {};
}

Result<UniqueFd> listen_locally(const fs::path& socket, int kind) {
  constexpr int kBacklog = 64;
  const auto failed = [&socket](const char* what) {
    return cannot(std::string("cannot ") + what + " " + socket.string(), errno,
                  "its directory must be writable for this user")
        .error();
  };
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.native().size() >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return failed("make");
  }
  std::memcpy(address.sun_path, socket.c_str(), socket.native().size());
  UniqueFd listener(::socket(AF_UNIX, kind | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener || ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return failed("make");
  if (::chmod(socket.c_str(), 0600) != 0) return failed("set the mode of");
  if (::listen(listener.get(), kBacklog) != 0) return failed("listen on");
  return listener;
}

std::optional<uid_t> caller_of(int fd) {
  ucred caller{};
  socklen_t length = sizeof caller;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &caller, &length) != 0 || length != sizeof caller)
    return std::nullopt;
  return caller.uid;
}

}  // namespace sluice::base
