// Data ports in processes of their own, joined by memifs, without hugepages, so that it runs anywhere.
//
// EAL starts once per process, so every node is a child forked before any EAL. Children tell what they
// see over a socket pair, line by line; a child that hangs is ended by its alarm and fails the test.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>

#include "dataplane/base/sandbox/profiles.h"
#include "dataplane/base/unique_fd.h"
#include "dataplane/core/wire.h"
#include "dataplane/dpdk/port.h"

namespace sluice::dpdk {

namespace fs = std::filesystem;

inline constexpr uint32_t kHeaderBytes = 106;
inline constexpr unsigned kHangSeconds = 100;

// ---- children ----------------------------------------------------------------------------------

// Lines to the parent, and its wish to stop: the end of the stream.
class Wire {
 public:
  explicit Wire(int fd) : fd_(fd) {}
  void say(const std::string& line) const { (void)!write(fd_, (line + "\n").data(), line.size() + 1); }
  bool stop_wanted() const {
    char byte = 0;
    return recv(fd_, &byte, 1, MSG_DONTWAIT) == 0;
  }

 private:
  int fd_;
};

class Child {
 public:
  template <typename Body>
  explicit Child(Body body) {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    fflush(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      close(ends[0]);
      alarm(kHangSeconds);
      const Wire wire(ends[1]);
      _exit(body(wire));
    }
    close(ends[1]);
    fd_.reset(ends[0]);
  }
  Child(const Child&) = delete;
  ~Child() {
    if (pid_ > 0) kill_hard();
  }

  // The next line, or "" when the child ended.
  std::string line() {
    std::string text;
    for (char byte = 0; read(fd_.get(), &byte, 1) == 1 && byte != '\n';) text += byte;
    return text;
  }
  void expect_line_with(const std::string& part) {
    std::string before;
    for (std::string seen = line(); seen.find(part) == std::string::npos; seen = line()) {
      ASSERT_FALSE(seen.empty()) << "the child ended before it said: " << part << "; it said:" << before;
      before += "\n" + seen;
    }
  }
  int exit_status() {
    shutdown(fd_.get(), SHUT_WR);
    int status = 0;
    waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }
  void kill_hard() {
    kill(pid_, SIGKILL);
    waitpid(std::exchange(pid_, -1), nullptr, 0);
  }

 private:
  pid_t pid_ = -1;
  UniqueFd fd_;
};

// ---- nodes -------------------------------------------------------------------------------------

class PortTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/sluice-port-test.XXXXXX";
    directory_ = mkdtemp(name);
  }
  void TearDown() override { fs::remove_all(directory_); }

  fs::path socket(const char* name = "memif.sock") const { return directory_ / name; }

  config::Node node(bool server, uint32_t workers = 1, const char* socket_name = "memif.sock") const {
    config::Node node;
    node.directory = directory_;
    node.name = server ? "server" : "client";
    node.device = std::string("net_memif0,role=") + node.name +
                  ",socket-abstract=no,socket=" + socket(socket_name).string();
    node.address4 = server ? "10.77.0.1/24" : "10.77.0.2/24";
    node.memory = "no-huge";
    node.memory_mib = 96;
    node.workers = workers;
    node.extent_bytes = 128U << 10;
    node.extents_per_worker = 8;
    cpu_set_t allowed;
    sched_getaffinity(0, sizeof allowed, &allowed);
    if (CPU_ISSET(0, &allowed) && CPU_ISSET(1, &allowed)) node.cores.assign(workers, server ? 0 : 1);
    return node;
  }

  fs::path directory_;
};

inline std::unique_ptr<Port> open_port(const config::Node& node, const Wire& wire) {
  auto port = Port::open(node, [](const std::string&) {});
  if (port) return std::move(*port);
  wire.say("error " + port.error().message);
  return nullptr;
}

// ---- frames ------------------------------------------------------------------------------------

// A frame says which bytes of which extent follow its header: the receiver can tell every byte.
struct Marker {
  uint32_t kind = 0;  // 1 greeting, 2 greeting answered, 3 data
  uint32_t number = 0;
  uint32_t extent = 0;
  uint32_t offset = 0;
  uint32_t length = 0;
};

inline void write_header(uint8_t* frame, const Marker& marker) {
  memset(frame, 0xff, kHeaderBytes);
  wire::store_be16(frame + 12, 0x88b5);  // for local experiments
  memcpy(frame + 14, &marker, sizeof marker);
}

inline bool append(net::FrameQueue& queue, const Marker& marker) {
  const net::Buffer& extent = queue.buffers()[marker.extent];
  // Every third frame is a copy.
  const net::Buffer* const owner = marker.number % 3 == 2 ? nullptr : &extent;
  const uint8_t* const payload = extent.data + marker.offset;
  uint8_t* const frame = queue.tx_begin(kHeaderBytes, payload, marker.length, owner, false);
  if (frame == nullptr) return false;
  write_header(frame, marker);
  if (owner != nullptr && queue.caller_copies()) memcpy(frame + kHeaderBytes, payload, marker.length);
  return true;
}

// Sends full frames for ever, with its number in them, and says which other numbers it hears.
inline int chat(const config::Node& node, uint32_t number, const Wire& wire) {
  auto port = open_port(node, wire);
  if (port == nullptr) return 1;
  std::atomic<bool> stop = false;
  const Status launched = port->launch([&](uint32_t) {
    net::FrameQueue& queue = port->frames(0);
    uint32_t last = 0;
    while (!stop) {
      net::RxFrame frames[net::kBurst];
      net::RxSegmented segmented;
      const uint32_t count = queue.rx(frames, net::kBurst, &segmented);
      Marker marker;
      if (count > 0) memcpy(&marker, frames[count - 1].data + 14, sizeof marker);
      queue.release(frames, count);
      if (count > 0 && marker.number != last) {
        last = marker.number;
        wire.say("heard " + std::to_string(last));
      }
      while (append(queue, {.kind = 3, .number = number, .length = 8192})) {
      }
      queue.tx_flush();
    }
  });
  if (!launched) return 2;
  const auto confined = sandbox::apply(
      sandbox::dataplane_profile(
          {.port = sandbox::PortKind::kMemif, .run_dir = node.run_dir(), .memif_client = true}),
      true);
  if (!confined) wire.say("error " + confined.error().message);
  wire.say("ready");
  while (!wire.stop_wanted()) {
    port->maintain();
    usleep(1000);
  }
  stop = true;
  port->join();
  return 0;
}

}  // namespace sluice::dpdk
