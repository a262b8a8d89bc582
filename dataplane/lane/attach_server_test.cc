// What comes over the attach socket is checked, and nothing of it is kept that was not asked for.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/lane/attach_server.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string_view>

#include "dataplane/crc/crc.h"

namespace sluice::lane {
namespace {

class Attach : public testing::Test {
 protected:
  Attach() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, (directory_ / "s").c_str());
    client_ = UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    EXPECT_EQ(::connect(client_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    server_.serve(0, -1);
  }
  ~Attach() override { std::filesystem::remove_all(directory_); }

  static std::filesystem::path directory() {
    std::string name = std::filesystem::temp_directory_path() / "sluice-attach-XXXXXX";
    return ::mkdtemp(name.data());
  }
  static board::PortInfo port() {
    board::PortInfo info{};
    info.extent_bytes_max = 1U << 20;
    return info;
  }
  static board::AttachRequest open_request(uint32_t object, uint64_t size, uint32_t flags) {
    return {.kind = board::AttachKind::kOpenObject,
            .object = object,
            .flags = flags,
            .size = size,
            .extent_bytes = 1U << 20};
  }
  // The reply's status; nothing when the server hung up.
  std::optional<int> request(const board::AttachRequest& r, int descriptors, size_t bytes = sizeof(r)) {
    std::vector<uint8_t> message(std::max(bytes, sizeof r));
    std::memcpy(message.data(), &r, sizeof r);
    iovec part{message.data(), bytes};
    alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))] = {};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    if (descriptors > 0) {
      const auto length = static_cast<size_t>(descriptors) * sizeof(int);
      header.msg_control = control;
      header.msg_controllen = CMSG_SPACE(length);
      cmsghdr* const c = CMSG_FIRSTHDR(&header);
      c->cmsg_level = SOL_SOCKET;
      c->cmsg_type = SCM_RIGHTS;
      c->cmsg_len = CMSG_LEN(length);
      for (int i = 0; i < descriptors; ++i) {
        const int fd = client_.get();
        std::memcpy(CMSG_DATA(c) + static_cast<size_t>(i) * sizeof(int), &fd, sizeof fd);
      }
    }
    EXPECT_EQ(::sendmsg(client_.get(), &header, MSG_NOSIGNAL), static_cast<ssize_t>(bytes));
    server_.serve(0, -1);
    board::AttachReply reply;
    if (::recv(client_.get(), &reply, sizeof reply, 0) != sizeof reply) return std::nullopt;
    return reply.status;
  }
  // Rises when somebody keeps a descriptor.
  static int lowest_free() { return UniqueFd(::dup(STDERR_FILENO)).get(); }

  std::filesystem::path directory_ = directory();
  BoardMemory memory_ = std::move(*BoardMemory::create(port()));
  ObjectTable objects_;
  KeyTable keys_;
  WorkerEpochs epochs_;
  AttachServer server_ =
      std::move(*AttachServer::listen(directory_ / "s", memory_, objects_, keys_, epochs_));
  UniqueFd client_;
};

TEST_F(Attach, KeepsNoDescriptorThatItDoesNotUse) {
  const int free_before = lowest_free();
  EXPECT_EQ(request(open_request(0, 1000, 0), 2), EINVAL);
  EXPECT_EQ(request(open_request(0, 1000, 0), 3), EINVAL);
  EXPECT_EQ(request(open_request(0, 1000, board::kObjectGenerate), 1), EINVAL);
  EXPECT_EQ(request({.kind = board::AttachKind::kCloseObject}, 1), ENOENT);
  EXPECT_EQ(lowest_free(), free_before);
  EXPECT_EQ(request(open_request(0, 1000, 0), 1), 0);
  EXPECT_GT(lowest_free(), free_before);
  EXPECT_EQ(request({.kind = board::AttachKind::kCloseObject}, 0), 0);
  EXPECT_EQ(lowest_free(), free_before);
}

TEST_F(Attach, TheBoardSaysByWhatIsSummed) {
  EXPECT_EQ(std::string_view(memory_.board().crc_variant), crc::variant());
}

TEST_F(Attach, AMessageOfAnotherLengthEndsTheConnection) {
  EXPECT_EQ(request({.kind = board::AttachKind::kHello}, 0, sizeof(board::AttachRequest) + 1), std::nullopt);
}

TEST_F(Attach, DestinationsTakeBoundedMemory) {
  constexpr uint32_t kDiscard = board::kObjectWrite | board::kObjectDiscard;
  EXPECT_EQ(request(open_request(0, 1ULL << 60, kDiscard), 0), ENOMEM);
  for (uint32_t object = 0; object < 3; ++object) {
    EXPECT_EQ(request(open_request(object, 400ULL << 40, kDiscard), 0), 0) << object;  // 50 MiB of bits
  }
  EXPECT_EQ(request(open_request(3, 1ULL << 50, kDiscard), 0), ENOMEM);
  EXPECT_EQ(request({.kind = board::AttachKind::kCloseSession}, 0), 0);
  EXPECT_EQ(request(open_request(3, 1ULL << 50, kDiscard), 0), 0);
}

TEST_F(Attach, TakesTheSecretOfAFlowForItsWorker) {
  board::AttachRequest r{.kind = board::AttachKind::kFlowKeys, .flow = 5, .tag = 9, .protection = 2};
  std::fill(std::begin(r.secret), std::end(r.secret), 0xA5);
  EXPECT_EQ(request(r, 0), 0);
  FlowSecret secret;
  EXPECT_FALSE(keys_.take(5, 8, &secret)) << "of another flow of the slot";
  EXPECT_FALSE(keys_.take(4, 9, &secret));
  ASSERT_TRUE(keys_.take(5, 9, &secret));
  EXPECT_EQ(secret.protection, wire::Protection::kAes256Gcm);
  EXPECT_EQ(secret.secret[31], 0xA5);
  EXPECT_FALSE(keys_.take(5, 9, &secret)) << "it is taken once";
}

TEST_F(Attach, TheNewestSecretOfASlotCounts) {
  board::AttachRequest r{.kind = board::AttachKind::kFlowKeys, .flow = 5, .tag = 9};
  EXPECT_EQ(request(r, 0), 0);
  r.tag = 10;
  EXPECT_EQ(request(r, 0), 0);
  FlowSecret secret;
  EXPECT_FALSE(keys_.take(5, 9, &secret));
  EXPECT_TRUE(keys_.take(5, 10, &secret));
}

TEST_F(Attach, RefusesKeysOfNoFlowOrNoCipher) {
  board::AttachRequest r{.kind = board::AttachKind::kFlowKeys, .flow = board::kFlowsMax};
  EXPECT_EQ(request(r, 0), EINVAL);
  r.flow = 0;
  r.protection = 3;
  EXPECT_EQ(request(r, 0), EINVAL);
}

TEST_F(Attach, TheLevelOfTheLogIsSetAndTold) {
  uint32_t level = 2;
  int asked = 0;
  server_.when_log_level([&](std::optional<uint32_t> wish) {
    if (wish) level = *wish;
    if (!wish) ++asked;
    return level;
  });
  EXPECT_EQ(request({.kind = board::AttachKind::kLogLevel, .level = 1}, 0), 0);
  EXPECT_EQ(level, 1U);
  EXPECT_EQ(request({.kind = board::AttachKind::kLogLevel, .level = board::kLogLevelAsked}, 0), 0);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(request({.kind = board::AttachKind::kLogLevel, .level = board::kLogLevels}, 0), EINVAL);
  EXPECT_EQ(level, 1U);
}

TEST_F(Attach, WhatControlWritesOverThePortsDataChangesNothing) {
  memory_.board().port.extent_bytes_max = 1U << 31;
  board::AttachRequest r = open_request(0, 1000, board::kObjectGenerate);
  r.extent_bytes = 1U << 21;
  EXPECT_EQ(request(r, 0), EINVAL);
}

}  // namespace
}  // namespace sluice::lane
