// The board as control sees it: mapped, and checked before anything in it is believed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "dataplane/base/error.h"
#include "dataplane/board/board.h"

namespace sluice::attach {

class BoardMap {
 public:
  // Maps the memfd (which may be closed afterwards) and checks magic, version, size, seals, PortInfo and
  // texts.
  static Result<BoardMap> map(int fd);
  BoardMap(BoardMap&& other) noexcept
      : board_(std::exchange(other.board_, nullptr)),
        port_(other.port_),
        crc_variant_(std::move(other.crc_variant_)) {}
  BoardMap& operator=(BoardMap&& other) noexcept {
    std::swap(board_, other.board_);
    port_ = other.port_;
    crc_variant_ = std::move(other.crc_variant_);
    return *this;
  }
  ~BoardMap();

  board::Board* operator->() const { return board_; }
  board::Board* get() const { return board_; }
  const board::PortInfo& port() const { return port_; }  // a copy, checked
  const std::string& crc_variant() const { return crc_variant_; }

 private:
  explicit BoardMap(board::Board* board) : board_(board) {}

  board::Board* board_ = nullptr;
  board::PortInfo port_{};
  std::string crc_variant_;
};

Status check_port(const board::PortInfo& port);
// The name in there, which is letters and digits up to a zero.
Result<std::string> read_crc_variant(std::span<const char> text);

}  // namespace sluice::attach
