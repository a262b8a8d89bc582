// SPDX-License-Identifier: Apache-2.0
#include "control/users/channel.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "dataplane/base/write_all.h"

namespace sluice::users {
namespace {

constexpr size_t kControlBytes = CMSG_SPACE(sizeof(int) * (kDescriptorsMax + 1));
// Of memory that has the message, which is the first descriptor. No message of ours begins with it.
constexpr char kBulk = '\0';
constexpr int kBulkSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

}  // namespace

int Channel::wait_for(short what, std::chrono::milliseconds limit) const {
  pollfd both[] = {{.fd = socket_.get(), .events = what, .revents = 0},
                   {.fd = lifeline_, .events = 0, .revents = 0}};
  const auto until = std::chrono::steady_clock::now() + limit;
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    const int ready = ::poll(both, 2, static_cast<int>(std::max<int64_t>(left.count(), 0)));
    if (ready > 0) return both[1].revents != 0 ? EPIPE : 0;
    if (ready == 0) return ETIMEDOUT;
    if (errno != EINTR) return errno;
  }
}

int Channel::send_bulk(const std::string& bytes, std::vector<int> descriptors,
                       std::chrono::milliseconds limit) {
  if (bytes.size() > kBulkBytesMax) return EMSGSIZE;
  const UniqueFd memory(::memfd_create("sluice-users", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory || !base::write_all(memory.get(), bytes.data(), bytes.size()) ||
      ::fcntl(memory.get(), F_ADD_SEALS, kBulkSeals) != 0)
    return errno;
  descriptors.insert(descriptors.begin(), memory.get());
  return send(std::string(1, kBulk), descriptors, limit);
}

// Of sealed memory: to read it waits for nobody, and it stays as it is.
int Channel::receive_bulk(Parcel* parcel) {
  if (parcel->descriptors.empty()) return EPROTO;
  const UniqueFd memory = std::move(parcel->descriptors.front());
  parcel->descriptors.erase(parcel->descriptors.begin());
  struct stat info {};
  const int seals = ::fcntl(memory.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kBulkSeals) != kBulkSeals || ::fstat(memory.get(), &info) != 0 ||
      static_cast<uint64_t>(info.st_size) > kBulkBytesMax)
    return EPROTO;
  parcel->bytes.resize(static_cast<size_t>(info.st_size));
  for (size_t at = 0; at < parcel->bytes.size();) {
    const ssize_t got =
        ::pread(memory.get(), parcel->bytes.data() + at, parcel->bytes.size() - at, static_cast<off_t>(at));
    if (got <= 0) return EPROTO;
    at += static_cast<size_t>(got);
  }
  return 0;
}

int Channel::send(const std::string& bytes, const std::vector<int>& descriptors,
                  std::chrono::milliseconds limit) {
  if (bytes.size() > kMessageBytesMax) return send_bulk(bytes, descriptors, limit);
  iovec part{.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
  alignas(cmsghdr) std::array<char, kControlBytes> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(sizeof(int) * descriptors.size());
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int) * descriptors.size());
    std::memcpy(CMSG_DATA(header), descriptors.data(), sizeof(int) * descriptors.size());
  }
  while (true) {
    if (const int reason = wait_for(POLLOUT, limit); reason != 0) return reason;
    const ssize_t sent = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent == static_cast<ssize_t>(bytes.size())) return 0;
    if (sent >= 0) return EPROTO;
    if (errno != EINTR && errno != EAGAIN) return errno == ECONNRESET ? EPIPE : errno;
  }
}

int Channel::receive(Parcel* parcel, std::chrono::milliseconds limit) {
  parcel->bytes.resize(kMessageBytesMax);
  parcel->descriptors.clear();
  alignas(cmsghdr) std::array<char, kControlBytes> control{};
  iovec part{.iov_base = parcel->bytes.data(), .iov_len = parcel->bytes.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  ssize_t got = -1;
  while (got < 0) {
    if (const int reason = wait_for(POLLIN, limit); reason != 0) return reason;
    got = ::recvmsg(socket_.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (got < 0 && errno != EINTR && errno != EAGAIN) return errno == ECONNRESET ? EPIPE : errno;
  }
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof fd);
      parcel->descriptors.emplace_back(fd);
    }
  }
  parcel->bytes.resize(static_cast<size_t>(got));
  // Nobody sends an empty message.
  if (got == 0) return EPIPE;
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) return EPROTO;
  return takes_bulk_ && got == 1 && parcel->bytes.front() == kBulk ? receive_bulk(parcel) : 0;
}

bool Channel::has_gone() const {
  pollfd one{.fd = socket_.get(), .events = POLLRDHUP, .revents = 0};
  return ::poll(&one, 1, 0) > 0 && (one.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)) != 0;
}

UniqueFd connect_to(const std::filesystem::path& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.native().size() >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return {};
  }
  std::memcpy(address.sun_path, socket.c_str(), socket.native().size());
  UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd && ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
  const int reason = errno;
  fd.reset();
  errno = reason;
  return fd;
}

}  // namespace sluice::users
