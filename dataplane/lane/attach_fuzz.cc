// A hostile control at the attach socket: requests of any content and length, with any descriptors. Every
// request gets one answer, the answer is what a plain model says, and no descriptor stays open.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <set>
#include <vector>

#include "dataplane/base/input_for_fuzz.h"
#include "dataplane/lane/attach_server.h"

namespace {

using namespace sluice;
using board::AttachKind;

constexpr uint32_t kMessagesMax = 24;

board::PortInfo port() {
  board::PortInfo info{};
  info.workers = 1;
  info.extent_bytes_max = 1U << 20;
  return info;
}

struct Server {
  Server()
      : directory(std::filesystem::temp_directory_path() /
                  ("sluice-attach-fuzz-" + std::to_string(getpid()))),
        memory(std::move(*lane::BoardMemory::create(port()))),
        // No workers: a closed object has no quiet point to wait for.
        server(std::move(*lane::AttachServer::listen(directory / "s", memory, objects, keys, epochs))) {}
  ~Server() { std::filesystem::remove_all(directory); }

  std::filesystem::path directory;
  lane::BoardMemory memory;
  lane::ObjectTable objects;
  lane::KeyTable keys;
  lane::WorkerEpochs epochs;
  lane::AttachServer server;
};

Server& server() {
  static Server the_server;
  return the_server;
}

UniqueFd connect() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, (server().directory / "s").c_str());
  UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  fuzz::require(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0, "connects");
  server().server.serve(0, -1);
  return fd;
}

// The lowest free number: it rises when somebody keeps a descriptor.
int lowest_free() { return UniqueFd(::dup(STDERR_FILENO)).get(); }

void send(int socket, const std::vector<uint8_t>& bytes, const std::vector<int>& fds) {
  iovec part{const_cast<uint8_t*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(8 * sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!fds.empty()) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
    cmsghdr* const c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    std::memcpy(CMSG_DATA(c), fds.data(), fds.size() * sizeof(int));
  }
  fuzz::require(::sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size()), "sends");
}

// False: the server hung up.
bool receive(int socket, board::AttachReply* reply, UniqueFd* fd) {
  iovec part{reply, sizeof *reply};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t bytes = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  fuzz::require(bytes == 0 || bytes == sizeof *reply, "an answer, or the end");
  if (const cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr) {
    int received = -1;
    std::memcpy(&received, CMSG_DATA(c), sizeof received);
    fd->reset(received);
  }
  return bytes != 0;
}

board::AttachRequest request(fuzz::Input& input) {
  board::AttachRequest r{.kind = static_cast<AttachKind>(1 + input.below(5))};
  const uint32_t odd = input.take<uint8_t>();  // which fields are out of the ordinary
  r.session = odd & 1 ? static_cast<uint32_t>(input.edge()) : input.below(3);
  r.object = odd & 2 ? static_cast<uint32_t>(input.edge()) : input.below(4);
  r.flags = odd & 4 ? static_cast<uint32_t>(input.edge()) : input.below(16);
  r.size = input.edge();
  r.extent_bytes = odd & 8 ? static_cast<uint32_t>(input.edge()) : 65536U << input.below(5);
  if (odd & 16) r.level = input.take<uint8_t>();
  if (odd & 32) r.kind = static_cast<AttachKind>(input.edge());
  if (odd & 64) {
    r.kind = AttachKind::kFlowKeys;
    r.flow = input.flag() ? static_cast<uint32_t>(input.edge()) : input.below(board::kFlowsMax);
    r.tag = input.below(3);
    r.protection = input.below(4);
    r.secret[input.below(sizeof r.secret)] = input.take<uint8_t>();
  }
  if (odd & 128) r.sums = input.take<uint8_t>();
  return r;
}

// What was opened, by (session, slot).
using Model = std::set<std::pair<uint32_t, uint32_t>>;

void check(const board::AttachRequest& r, const board::AttachReply& reply, size_t fds, bool fd,
           Model& model) {
  const std::pair<uint32_t, uint32_t> key(r.session, r.object % board::kOpenObjectsMax);
  const bool in_range = r.session < board::kSessionsMax;
  fuzz::require(reply.kind == r.kind && reply.status >= 0, "the answer names the question");
  const lane::Object* const object = in_range ? server().objects.find(r.session, r.object) : nullptr;
  const bool fetched = r.kind == AttachKind::kFetchObject && object != nullptr && object->fd;
  fuzz::require(fd == (fetched || r.kind == AttachKind::kHello), "descriptors come only when asked for");
  switch (r.kind) {
    case AttachKind::kHello:
      fuzz::require(reply.status == 0 && reply.board_bytes == sizeof(board::Board), "hello");
      break;
    case AttachKind::kOpenObject:
      if (reply.status == 0) {
        fuzz::require(in_range && model.insert(key).second && fds <= 1, "opened what was free");
        fuzz::require(object != nullptr && object->size == r.size && object->extent_bytes <= 1U << 20 &&
                          static_cast<bool>(object->fd) == (fds == 1) && object->sums == r.sums &&
                          (r.sums & ~board::kSumsKnown) == 0,
                      "as asked");
      }
      if (reply.status == EEXIST) fuzz::require(model.contains(key), "exists");
      break;
    case AttachKind::kCloseObject:
      fuzz::require(reply.status == (!in_range ? EINVAL : model.erase(key) == 1 ? 0 : ENOENT), "closes");
      break;
    case AttachKind::kCloseSession:
      fuzz::require(reply.status == (in_range ? 0 : EINVAL), "closes all");
      std::erase_if(model, [&](const auto& k) { return k.first == r.session; });
      break;
    case AttachKind::kFetchObject:
      fuzz::require(reply.status == (object == nullptr ? ENOENT : 0), "fetches what is open");
      fuzz::require(object == nullptr || reply.board_bytes == object->size, "with its size");
      break;
    case AttachKind::kFlowKeys: {
      const bool good = r.flow < board::kFlowsMax && r.protection <= 2 && r.sums == 0;
      fuzz::require(reply.status == (good ? 0 : EINVAL), "takes keys of a flow");
      lane::FlowSecret secret;
      if (good) {
        fuzz::require(server().keys.take(r.flow, r.tag, &secret) &&
                          std::equal(secret.secret.begin(), secret.secret.end(), std::begin(r.secret)),
                      "as they were given");
      }
      break;
    }
    case AttachKind::kLogLevel: {
      const bool good = r.level < board::kLogLevels || r.level == board::kLogLevelAsked;
      fuzz::require(reply.status == (good ? 0 : EINVAL), "takes a level of the log");
      fuzz::require(reply.board_bytes < board::kLogLevels, "and says one");
      break;
    }
    default:
      fuzz::require(reply.status == ENOSYS, "unknown");
  }
}

// One message and its answer; false when the connection is over.
bool exchange(fuzz::Input& input, int socket, Model& model) {
  const board::AttachRequest r = request(input);
  std::vector<uint8_t> bytes(sizeof r);
  std::memcpy(bytes.data(), &r, sizeof r);
  const uint32_t shape = input.take<uint8_t>();
  if (shape >= 250) bytes.resize(1 + input.below(80));
  const bool well_formed = bytes.size() == sizeof r;
  std::vector<int> fds;
  for (uint32_t i = shape % 8 < 4 ? shape % 2 : shape % 8 - 3; i > 0; --i) fds.push_back(STDERR_FILENO);
  send(socket, bytes, fds);
  server().server.serve(0, -1);
  board::AttachReply reply;
  UniqueFd fd;
  const bool answered = receive(socket, &reply, &fd);
  fuzz::require(answered == well_formed, "a whole request is answered, another ends the connection");
  if (answered) check(r, reply, fds.size(), static_cast<bool>(fd), model);
  return answered;
}

void close_all(int socket, const Model& model) {
  for (const auto& [session, index] : model) {
    fuzz::require(server().objects.at(session, index) != nullptr, "what was opened is there");
    const board::AttachRequest r{.kind = AttachKind::kCloseObject, .session = session, .object = index};
    (void)::send(socket, &r, sizeof r, MSG_NOSIGNAL);
    server().server.serve(0, -1);
    board::AttachReply reply;
    UniqueFd fd;
    fuzz::require(receive(socket, &reply, &fd) && reply.status == 0, "and closes");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  server();
  const int free_before = lowest_free();
  {
    Model model;
    UniqueFd client = connect();
    for (uint32_t i = 0; i < kMessagesMax && !input.empty(); ++i) {
      if (!exchange(input, client.get(), model)) client = connect();
      if (input.below(16) == 15) {
        const UniqueFd second = connect();
        board::AttachReply reply;
        UniqueFd fd;
        fuzz::require(receive(second.get(), &reply, &fd) && reply.status == EBUSY && !fd,
                      "one client at a time");
      }
    }
    close_all(client.get(), model);
  }
  server().server.serve(0, -1);  // sees the client's end
  fuzz::require(lowest_free() == free_before, "no descriptor stays open");
  return 0;
}
