// SPDX-License-Identifier: Apache-2.0
#include "storage/ring.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>

#include "dataplane/base/unique_fd.h"

namespace sluice::storage {
namespace {

constexpr uint32_t kSlots = 8;

// The one ring of this process.
int ring_descriptor() {
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    const std::string target = std::filesystem::read_symlink(entry.path(), ignored);
    if (target.find("io_uring") != std::string::npos) return std::stoi(entry.path().filename());
  }
  return -1;
}

class RingTest : public ::testing::Test {
 protected:
  RingTest() {
    char name[] = "/tmp/sluice-ring-XXXXXX";
    file_ = UniqueFd(::mkstemp(name));
    ::unlink(name);
    opened_ = static_cast<bool>(ring_.open(kSlots, {memory_.data(), memory_.size()}, {},
                                           [this](const std::string& text) { said_ += text; }));
  }
  void SetUp() override {
    if (!opened_) GTEST_SKIP() << "no io_uring here";
    ASSERT_TRUE(ring_.restricted()) << said_;  // by every kernel since 5.10
  }

  alignas(4096) std::array<uint8_t, 65536> memory_{};
  UniqueFd file_;
  std::string said_;
  Ring ring_;
  bool opened_ = false;
};

// A buffer at an odd address stands for what this file system refuses of others.
TEST_F(RingTest, WhatIsRefusedAsDirectGoesByThePageCache) {
  if (::fcntl(file_.get(), F_SETFL, O_DIRECT) != 0) GTEST_SKIP() << "/tmp takes no O_DIRECT";
  std::memset(memory_.data() + 1, 'x', 8192);
  for (const uint32_t slot : {0U, 1U}) {
    ring_.start(slot, {.fd = file_.get(),
                       .data = memory_.data() + 1,
                       .offset = 4096 * slot,
                       .length = 4096,
                       .write = true,
                       .direct = true});
  }
  ring_.submit();
  Completion done[2];
  for (uint32_t count = 0; count < 2;) {
    const uint32_t got = ring_.poll(done);
    for (uint32_t i = 0; i < got; ++i) EXPECT_EQ(done[i].error, 0);
    count += got;
    ring_.submit();
  }
  char read[8192];
  ASSERT_EQ(::pread(file_.get(), read, sizeof read, 0), ssize_t{sizeof read});
  EXPECT_EQ(std::string_view(read, sizeof read), std::string(sizeof read, 'x'));
}

TEST_F(RingTest, WritesAndReads) {
  std::memset(memory_.data(), 'x', 4096);
  Completion done[1];
  for (const bool write : {true, false}) {
    ring_.start(0, {.fd = file_.get(),
                    .data = memory_.data() + (write ? 0 : 4096),
                    .offset = 0,
                    .length = 4096,
                    .write = write});
    ring_.submit();
    while (ring_.poll(done) == 0) {
    }
    EXPECT_EQ(done[0].error, 0);
  }
  EXPECT_EQ(memory_[4096], 'x');
}

// Whoever took the dataplane over has the descriptor of its ring, and no filter of system calls sees what is
// asked of it.
TEST_F(RingTest, DoesNothingElse) {
  const int fd = ring_descriptor();
  ASSERT_GE(fd, 0);
  EXPECT_EQ(::syscall(SYS_io_uring_register, fd, IORING_REGISTER_EVENTFD, &fd, 1), -1)
      << "nothing is registered";
  EXPECT_EQ(errno, EACCES);

  // Where its parts lie is told by another one of the same size.
  io_uring twin{};
  io_uring_params params{};
  params.flags = IORING_SETUP_CQSIZE;
  params.cq_entries = 4 * kSlots;
  ASSERT_EQ(io_uring_queue_init_params(kSlots, &twin, &params), 0);
  io_uring_queue_exit(&twin);
  io_uring stolen{};
  ASSERT_EQ(io_uring_queue_mmap(fd, &params, &stolen), 0);
  io_uring_sqe* const sqe = io_uring_get_sqe(&stolen);
  ASSERT_NE(sqe, nullptr);
  io_uring_prep_openat(sqe, AT_FDCWD, "/etc/passwd", O_RDONLY, 0);
  stolen.enter_ring_fd = fd;
  EXPECT_EQ(io_uring_submit_and_wait(&stolen, 1), 1);
  io_uring_cqe* cqe = nullptr;
  ASSERT_EQ(io_uring_peek_cqe(&stolen, &cqe), 0);
  EXPECT_EQ(cqe->res, -EACCES);
  io_uring_cqe_seen(&stolen, cqe);
}

}  // namespace
}  // namespace sluice::storage
