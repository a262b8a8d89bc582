// SPDX-License-Identifier: Apache-2.0
#include "control/attach/map.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "dataplane/base/unique_fd.h"

namespace sluice::attach {
namespace {

board::PortInfo good_port() {
  board::PortInfo port{};
  port.workers = 2;
  port.extent_bytes_max = 1U << 20;
  port.ip4[15] = 1;
  port.chunk_bytes_max_ip4 = 8896;
  port.rx_extents = port.tx_extents = 32;
  std::strcpy(port.device, "net_memif0");
  return port;
}

// A board as the dataplane makes it, with one thing changed.
template <typename Change>
Status map_board(Change change, unsigned seals = F_SEAL_SHRINK | F_SEAL_GROW,
                 size_t bytes = sizeof(board::Board)) {
  const UniqueFd fd(::memfd_create("board-test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(bytes)), 0);
  void* memory = ::mmap(nullptr, sizeof(board::Board), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (bytes == sizeof(board::Board)) {
    auto* board = static_cast<board::Board*>(memory);
    board->magic = board::kMagic;
    board->version = board::kVersion;
    board->board_bytes = sizeof(board::Board);
    board->port = good_port();
    std::strcpy(board->crc_variant, "avx2");
    change(*board);
  }
  ::munmap(memory, sizeof(board::Board));
  EXPECT_EQ(::fcntl(fd.get(), F_ADD_SEALS, seals), 0);
  const Result<BoardMap> map = BoardMap::map(fd.get());
  if (!map) return map.error();
  EXPECT_EQ(map->port().workers, 2U);
  EXPECT_EQ(map->crc_variant(), "avx2");
  return {};
}

TEST(BoardMap, TakesABoardOfItsOwnVersionOnly) {
  EXPECT_TRUE(map_board([](board::Board&) {}));
  EXPECT_FALSE(map_board([](board::Board& board) { board.magic ^= 1; }));
  EXPECT_FALSE(map_board([](board::Board& board) { ++board.version; }));
  EXPECT_FALSE(map_board([](board::Board& board) { ++board.board_bytes; }));
}

TEST(BoardMap, RefusesMemoryThatCouldShrinkOrHasAnotherSize) {
  EXPECT_FALSE(map_board([](board::Board&) {}, F_SEAL_GROW));
  EXPECT_FALSE(map_board([](board::Board&) {}, F_SEAL_SHRINK, 4096));
}

TEST(BoardMap, RefusesAPortThatCannotBe) {
  const auto refused = [](auto change) {
    board::PortInfo port = good_port();
    change(port);
    return !check_port(port);
  };
  EXPECT_FALSE(refused([](board::PortInfo&) {}));
  EXPECT_TRUE(refused([](board::PortInfo& port) { port.workers = 0; }));
  EXPECT_TRUE(refused([](board::PortInfo& port) { std::ranges::fill(port.fallback_for, 'x'); }));
  EXPECT_TRUE(refused([](board::PortInfo& port) { std::ranges::fill(port.fallback_reason, 'x'); }));
  EXPECT_TRUE(refused([](board::PortInfo& port) { port.workers = board::kWorkersMax + 1; }));
  EXPECT_TRUE(refused([](board::PortInfo& port) { port.extent_bytes_max = 3U << 16; }));
  EXPECT_TRUE(refused([](board::PortInfo& port) { port.chunk_bytes_max_ip4 = 100; }));
  EXPECT_TRUE(refused([](board::PortInfo& port) { port.ip6[0] = 0xFD; }));
  EXPECT_TRUE(refused([](board::PortInfo& port) { port.rx_extents = 1U << 20; }));
  EXPECT_TRUE(refused([](board::PortInfo& port) { std::memset(port.device, 'x', sizeof port.device); }));
  EXPECT_TRUE(
      refused([](board::PortInfo& port) { std::memset(port.abilities, 'x', sizeof port.abilities); }));
}

TEST(BoardMap, RefusesANameThatNobodyMayPrint) {
  EXPECT_FALSE(map_board([](board::Board& board) { board.crc_variant[0] = '\0'; }));
  EXPECT_FALSE(map_board([](board::Board& board) { board.crc_variant[1] = '\n'; }));
  EXPECT_FALSE(map_board([](board::Board& board) { board.crc_variant[3] = '\xFF'; }));
  const auto endless = [](board::Board& board) {
    std::memset(board.crc_variant, 'x', sizeof board.crc_variant);
  };
  const Status status = map_board(endless);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("a wrong name of its CRC variant: run sluice-control"),
            std::string::npos)
      << status.error().message;
}

}  // namespace
}  // namespace sluice::attach
