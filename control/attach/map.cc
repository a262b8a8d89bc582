// SPDX-License-Identifier: Apache-2.0
#include "control/attach/map.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

#include "dataplane/core/wire.h"

namespace sluice::attach {
namespace {

Error bad_board(const std::string& what) {
  return {ErrorCode::kDaemonNotRunning,
          fmt::format("the dataplane's board has {}: run sluice-control and sluice-dataplane of one version",
                      what)};
}

}  // namespace

Status check_port(const board::PortInfo& port) {
  if (port.workers == 0 || port.workers > board::kWorkersMax) return bad_board("a wrong number of workers");
  if (!std::has_single_bit(port.extent_bytes_max) || port.extent_bytes_max < (64U << 10) ||
      port.extent_bytes_max > wire::kExtentBytesMax) {
    return bad_board("a wrong extent size");
  }
  static constexpr uint8_t kNoAddress[16] = {};
  const auto bad_chunk = [](const uint8_t* ip, uint32_t bytes) {
    return std::memcmp(ip, kNoAddress, 16) != 0 &&
           (bytes < wire::kChunkBytesMin || bytes > wire::kChunkBytesMax);
  };
  if (bad_chunk(port.ip4, port.chunk_bytes_max_ip4) || bad_chunk(port.ip6, port.chunk_bytes_max_ip6)) {
    return bad_board("a wrong chunk size");
  }
  if (port.rx_extents > 65536 || port.tx_extents > 65536) return bad_board("a wrong number of extents");
  if (std::memchr(port.device, 0, sizeof port.device) == nullptr) return bad_board("a wrong device name");
  for (const std::span<const char> text :
       {std::span<const char>(port.abilities), std::span<const char>(port.fallback_for),
        std::span<const char>(port.fallback_reason)}) {
    if (std::memchr(text.data(), 0, text.size()) == nullptr) return bad_board("a text without end");
  }
  return {};
}

Result<std::string> read_crc_variant(std::span<const char> text) {
  const auto end = std::find(text.begin(), text.end(), '\0');
  const bool good = end != text.begin() && end != text.end() && std::all_of(text.begin(), end, [](char c) {
                      return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
                    });
  if (!good) return bad_board("a wrong name of its CRC variant");
  return std::string(text.begin(), end);
}

Result<BoardMap> BoardMap::map(int fd) {
  struct stat stat {};
  if (::fstat(fd, &stat) != 0 || stat.st_size != static_cast<off_t>(sizeof(board::Board))) {
    return bad_board("another size");
  }
  // Without the seal the other side could shrink it, and reading would kill this process.
  const int seals = ::fcntl(fd, F_GET_SEALS);
  if (seals < 0 || !(seals & F_SEAL_SHRINK)) return bad_board("no seal against shrinking");
  void* memory = ::mmap(nullptr, sizeof(board::Board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) {
    return Error{ErrorCode::kInternal, fmt::format("cannot map the board: {}", std::strerror(errno))};
  }
  BoardMap map(static_cast<board::Board*>(memory));
  if (map->magic != board::kMagic) return bad_board("no Sluice in it");
  if (map->version != board::kVersion) return bad_board("another version");
  if (map->board_bytes != sizeof(board::Board)) return bad_board("another size");
  std::memcpy(&map.port_, &map->port, sizeof map.port_);
  if (Status status = check_port(map.port_); !status) return status.error();
  char crc_variant[sizeof map->crc_variant];
  std::memcpy(crc_variant, map->crc_variant, sizeof crc_variant);
  Result<std::string> name = read_crc_variant(crc_variant);
  if (!name) return name.error();
  map.crc_variant_ = std::move(*name);
  return map;
}

BoardMap::~BoardMap() {
  if (board_ != nullptr) ::munmap(board_, sizeof(board::Board));
}

}  // namespace sluice::attach
