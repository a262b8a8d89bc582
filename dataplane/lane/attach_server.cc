// SPDX-License-Identifier: Apache-2.0
#include "dataplane/lane/attach_server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "dataplane/crc/crc.h"
#include "dataplane/lane/clock.h"
#include "dataplane/lane/coder.h"
#include "dataplane/sums/summer.h"
#include "storage/disk.h"

namespace sluice::lane {
namespace {

// Longest wait for workers to let go of an object; they pass a quiet point every millisecond or so.
constexpr uint64_t kQuietNsMax = 5'000'000'000;
constexpr int64_t kCloseNsMax = 20'000'000;  // all objects of a session take less than control waits
constexpr uint64_t kObjectBytesMax = 1ULL << 60;
// For the bits of all open destinations' extents: 2 PiB of 1 MiB extents.
constexpr uint64_t kWrittenBytesMax = 256ULL << 20;

Error system_error(const std::string& what) {
  return {ErrorCode::kInternal, what + ": " + std::strerror(errno)};
}

void yield_briefly() {
  const timespec t{0, 50'000};
  nanosleep(&t, nullptr);
}

void* close_number(void* fd) {
  ::close(static_cast<int>(reinterpret_cast<intptr_t>(fd)));
  return nullptr;
}

// A close waits for the server where NFS has pages to write, and for the program of a FUSE file system. One
// that does not answer holds up a thread of its own, and nobody else for longer than this.
void close_aside(UniqueFd fd) {
  pthread_t closer{};
  void* const number = reinterpret_cast<void*>(static_cast<intptr_t>(fd.get()));
  if (pthread_create(&closer, nullptr, close_number, number) != 0) return;  // then it is closed here
  (void)fd.release();
  timespec until{};
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_nsec += kCloseNsMax;
  until.tv_sec += until.tv_nsec / 1'000'000'000;
  until.tv_nsec %= 1'000'000'000;
  if (pthread_clockjoin_np(closer, nullptr, CLOCK_MONOTONIC, &until) != 0) pthread_detach(closer);
}

// The descriptors that came with a message: all of them are taken, so that none stays open unseen.
std::vector<UniqueFd> take_descriptors(msghdr& message) {
  std::vector<UniqueFd> fds;
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    for (size_t at = 0; CMSG_LEN(at + sizeof(int)) <= c->cmsg_len; at += sizeof(int)) {
      int received = -1;
      std::memcpy(&received, CMSG_DATA(c) + at, sizeof received);
      fds.emplace_back(received);
    }
  }
  return fds;
}

}  // namespace

Result<BoardMemory> BoardMemory::create(const board::PortInfo& port) {
  BoardMemory memory;
  memory.fd_ = UniqueFd(memfd_create("sluice-board", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory.fd_ || ftruncate(memory.fd_.get(), sizeof(board::Board)) != 0) {
    return system_error("the board's shared memory cannot be made");
  }
  void* const at =
      mmap(nullptr, sizeof(board::Board), PROT_READ | PROT_WRITE, MAP_SHARED, memory.fd_.get(), 0);
  if (at == MAP_FAILED) return system_error("the board's shared memory cannot be mapped");
  if (fcntl(memory.fd_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return system_error("the board's shared memory cannot be sealed");
  }
  // All zero is the initial value of every ring and atomic; untouched slots cost no memory.
  memory.board_ = static_cast<board::Board*>(at);
  memory.board_->magic = board::kMagic;
  memory.board_->version = board::kVersion;
  memory.board_->board_bytes = sizeof(board::Board);
  memory.board_->port = port;
  memory.board_->port.codes = codes_built_in();
  memory.board_->port.sums = sums::available();
  crc::variant().copy(memory.board_->crc_variant, sizeof memory.board_->crc_variant - 1);
  if (getrandom(&memory.board_->generation, sizeof memory.board_->generation, 0) < 0) {
    return system_error("no random numbers");
  }
  return memory;
}

Result<AttachServer> AttachServer::listen(const std::filesystem::path& socket, BoardMemory& memory,
                                          ObjectTable& objects, KeyTable& keys, const WorkerEpochs& epochs,
                                          bool sends_any_memory) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.native().size() >= sizeof address.sun_path) {
    return Error{
        ErrorCode::kConfiguration,
        socket.native() + ": path too long for a unix socket (107 bytes); use a shorter node directory"};
  }
  std::memcpy(address.sun_path, socket.c_str(), socket.native().size() + 1);
  const auto* const name = reinterpret_cast<const sockaddr*>(&address);

  const UniqueFd probe(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (connect(probe.get(), name, sizeof address) == 0) {
    return Error{ErrorCode::kConfiguration,
                 socket.native() + ": another sluice-dataplane serves this node; stop it first"};
  }
  std::error_code ignored;
  std::filesystem::create_directories(socket.parent_path(), ignored);
  std::filesystem::remove(socket, ignored);
  UniqueFd listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const mode_t mask = umask(0177);
  const int bound = bind(listener.get(), name, sizeof address);
  umask(mask);
  if (bound != 0 || ::listen(listener.get(), 4) != 0) {
    return Error{ErrorCode::kConfiguration,
                 socket.native() + ": cannot listen: " + std::strerror(errno) + "; check the node directory"};
  }
  return AttachServer(socket, std::move(listener), memory, objects, keys, epochs, sends_any_memory);
}

AttachServer::AttachServer(std::filesystem::path socket, UniqueFd listener, BoardMemory& memory,
                           ObjectTable& objects, KeyTable& keys, const WorkerEpochs& epochs,
                           bool sends_any_memory)
    : socket_(std::move(socket)),
      listener_(std::move(listener)),
      memory_(&memory),
      extent_bytes_max_(memory.board().port.extent_bytes_max),
      objects_(&objects),
      keys_(&keys),
      epochs_(&epochs),
      sends_any_memory_(sends_any_memory) {}

AttachServer::~AttachServer() {
  if (!listener_) return;  // moved from
  std::error_code ignored;
  std::filesystem::remove(socket_, ignored);
}

void AttachServer::serve(int timeout_ms, int wake_fd) {
  std::array<pollfd, 3> fds{{{listener_.get(), POLLIN, 0}, {wake_fd, POLLIN, 0}, {client_.get(), POLLIN, 0}}};
  if (poll(fds.data(), client_ ? 3 : 2, timeout_ms) <= 0) return;
  if (client_ && fds[2].revents != 0) handle_request();
  if (fds[0].revents != 0) accept_client();
}

void AttachServer::accept_client() {
  UniqueFd fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd) return;
  if (!client_) {
    client_ = std::move(fd);
    return;
  }
  const board::AttachReply busy{.kind = board::AttachKind::kHello, .status = EBUSY};
  (void)!send(fd.get(), &busy, sizeof busy, MSG_NOSIGNAL);
}

void AttachServer::handle_request() {
  board::AttachRequest request;
  iovec part{&request, sizeof request};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t bytes = recvmsg(client_.get(), &message, MSG_CMSG_CLOEXEC);
  if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) return;
  std::vector<UniqueFd> fds;
  if (bytes >= 0) fds = take_descriptors(message);
  // The client has gone, or does not speak this protocol.
  if (bytes != sizeof request || (message.msg_flags & MSG_TRUNC) != 0) {
    client_.reset();
    return;
  }
  int passed = -1;
  board::AttachReply reply = answer(request, std::move(fds), &passed);
  seal::wipe(request.secret);
  part = {&reply, sizeof reply};
  message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (passed >= 0) {
    control.fill(0);
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(c), &passed, sizeof passed);
  }
  if (sendmsg(client_.get(), &message, MSG_NOSIGNAL) != sizeof reply) client_.reset();
}

board::AttachReply AttachServer::answer(const board::AttachRequest& request, std::vector<UniqueFd> fds,
                                        int* passed) {
  board::AttachReply reply{.kind = request.kind};
  switch (request.kind) {
    case board::AttachKind::kHello:
      reply.board_bytes = sizeof(board::Board);
      *passed = memory_->fd();
      break;
    case board::AttachKind::kOpenObject:
      reply.status =
          fds.size() > 1 ? EINVAL : open_object(request, fds.empty() ? UniqueFd() : std::move(fds[0]));
      break;
    case board::AttachKind::kCloseObject:
      reply.status = request.session < board::kSessionsMax
                         ? close_object(request.session, request.object % board::kOpenObjectsMax)
                         : EINVAL;
      break;
    case board::AttachKind::kCloseSession:
      if (request.session >= board::kSessionsMax) {
        reply.status = EINVAL;
        break;
      }
      for (uint32_t i = 0; i < board::kOpenObjectsMax; ++i) {
        if (objects_->at(request.session, i) == nullptr) continue;
        const int status = close_object(request.session, i);
        if (status != 0) reply.status = status;
      }
      break;
    case board::AttachKind::kFetchObject: {
      const Object* const object =
          request.session < board::kSessionsMax ? objects_->find(request.session, request.object) : nullptr;
      reply.status = object == nullptr ? ENOENT : 0;
      if (object != nullptr) {
        reply.board_bytes = object->size;
        *passed = object->fd.get();
      }
      break;
    }
    case board::AttachKind::kFlowKeys:
      reply.status = take_keys(request);
      break;
    case board::AttachKind::kLogLevel:
      if (request.level < board::kLogLevels) {
        reply.board_bytes = log_level_(request.level);
      } else if (request.level == board::kLogLevelAsked) {
        reply.board_bytes = log_level_(std::nullopt);
      } else {
        reply.status = EINVAL;
      }
      break;
    default:
      reply.status = ENOSYS;
  }
  return reply;
}

int AttachServer::take_keys(const board::AttachRequest& r) {
  if (r.flow >= board::kFlowsMax || r.protection >= std::size(wire::kProtectionNames) || r.sums != 0)
    return EINVAL;
  FlowSecret secret(r.tag, static_cast<wire::Protection>(r.protection), {});
  static_assert(board::kFlowSecretBytes == seal::kSecretBytes);
  std::copy(std::begin(r.secret), std::end(r.secret), secret.secret.begin());
  return keys_->put(r.flow, secret) ? 0 : EBUSY;
}

int AttachServer::open_object(const board::AttachRequest& r, UniqueFd fd) {
  constexpr uint32_t kKnown =
      board::kObjectWrite | board::kObjectDirect | board::kObjectDiscard | board::kObjectGenerate;
  const bool write = (r.flags & board::kObjectWrite) != 0;
  const bool stored = (r.flags & (board::kObjectDiscard | board::kObjectGenerate)) == 0;
  const bool power_of_two = (r.extent_bytes & (r.extent_bytes - 1)) == 0;
  if (r.session >= board::kSessionsMax || (r.flags & ~kKnown) != 0 || r.level != 0 ||
      stored != static_cast<bool>(fd) || !power_of_two || r.extent_bytes < 65536 ||
      r.extent_bytes > extent_bytes_max_ || r.size > kObjectBytesMax || r.base > kObjectBytesMax ||
      r.base % storage::kDirectAlignment != 0 || (r.base != 0 && !stored) ||
      ((r.flags & board::kObjectDiscard) != 0 && !write) ||
      ((r.flags & board::kObjectGenerate) != 0 && write) || (r.sums & ~sums::available()) != 0 ||
      (r.sums != 0 && !write)) {
    return EINVAL;
  }
  auto object = std::make_unique<Object>();
  object->session = r.session;
  object->id = r.object;
  object->flags = r.flags;
  object->extent_bytes = r.extent_bytes;
  object->size = r.size;
  object->base = r.base;
  object->sums = r.sums;
  object->fd = std::move(fd);
  // What begins elsewhere is read and written as any file.
  if (object->fd && object->base == 0 && storage::is_memory_file(object->fd.get())) {
    if (write) object->mapping = storage::Mapping::of_destination(object->fd.get(), r.size);
    if (!write && sends_any_memory_) object->mapping = storage::Mapping::of_source(object->fd.get(), r.size);
  }
  if (write) {
    const uint64_t words = object->extent_count() / 64 + 1;
    if (8 * words > kWrittenBytesMax - written_bytes_) return ENOMEM;
    object->written =
        std::unique_ptr<std::atomic<uint64_t>[]>(new (std::nothrow) std::atomic<uint64_t>[words]());
    if (object->written == nullptr) return ENOMEM;
  }
  const uint64_t written_bytes = object->written_bytes();
  if (!objects_->publish(std::move(object))) return EEXIST;
  written_bytes_ += written_bytes;
  return 0;
}

// Returns once every worker has passed two quiet points after this call began.
void AttachServer::wait_quiet() const {
  const uint64_t deadline = monotonic_ns() + kQuietNsMax;
  for (const auto& epoch : *epochs_) {
    const uint64_t target = epoch->load(std::memory_order_acquire) + 2;
    while (epoch->load(std::memory_order_acquire) < target && monotonic_ns() < deadline) yield_briefly();
  }
}

int AttachServer::close_object(uint32_t session, uint32_t index) {
  std::unique_ptr<Object> object = objects_->retract(session, index);
  if (object == nullptr) return ENOENT;
  wait_quiet();
  const uint64_t deadline = monotonic_ns() + kQuietNsMax;
  while (object->extents_in_use.load(std::memory_order_acquire) != 0 && monotonic_ns() < deadline)
    yield_briefly();
  if (object->extents_in_use.load(std::memory_order_acquire) == 0) {
    written_bytes_ -= object->written_bytes();
    object->mapping.reset();
    if (object->fd) close_aside(std::move(object->fd));
    return 0;
  }
  // Control closed it too early, while a flow uses it. It must stay, or a write would go to a descriptor that
  // is another file by then.
  objects_->publish(std::move(object));
  return EBUSY;
}

}  // namespace sluice::lane
