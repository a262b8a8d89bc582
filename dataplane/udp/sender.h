// Datagrams of one worker on their way into sockets, in as few system calls as can be.
//
// A datagram is two pieces, header and payload, which the kernel gathers: the payload is read where it lies.
// Those of one size to one peer are given to the kernel as one piece (UDP_SEGMENT), which it cuts behind the
// protocol stack or in the device.
//
// Hot; one thread: no allocation, lock or log. What the kernel refuses is lost, and counted, as on any wire;
// what finds no room in a socket stays first in line.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/socket.h>

#include <array>
#include <atomic>
#include <span>

#include "dataplane/board/counters.h"
#include "dataplane/udp/memory.h"
#include "dataplane/udp/path.h"

namespace sluice::udp {

inline constexpr uint32_t kHeaderBytesMax = 80;

class Sender {
 public:
  explicit Sender(board::CounterWriter counters);

  net::TxDatagram begin(SocketPath& path, std::span<const uint8_t> payload, const net::Buffer* owner);
  void flush(uint64_t now_ns);
  // A datagram that waits for room points into it.
  bool holds(const net::Buffer& buffer) const;
  void forget(const SocketPath& path);
  // The last reason for which the kernel refused a datagram, errno; any thread. Taking it clears it.
  int take_refusal() { return refusal_.exchange(0, std::memory_order_relaxed); }

 private:
  static constexpr uint32_t kDatagrams = 128;         // that are begun and not sent
  static constexpr uint32_t kMessages = net::kBurst;  // in one call
  static constexpr uint32_t kCopyBytes = 36U << 10;
  struct Datagram {
    SocketPath* path = nullptr;
    bool copied = false;  // its payload lies in copies_, at its place
  };
  struct Message {
    uint32_t datagrams = 0;
    alignas(cmsghdr) std::array<uint8_t, CMSG_SPACE(sizeof(uint16_t))> control{};
  };

  uint8_t* header(uint32_t i) { return headers_.data() + size_t{i} * kHeaderBytesMax; }
  uint8_t* copy(uint32_t i) { return copies_.data() + size_t{places_[i]} * kCopyBytes; }
  size_t bytes_of(uint32_t i) const { return pieces_[2 * i].iov_len + pieces_[2 * i + 1].iov_len; }
  uint32_t send_run(SocketPath& path, uint32_t first, uint32_t end, uint64_t now_ns);
  uint32_t gather(SocketPath& path, uint32_t first, uint32_t end);
  void move(uint32_t from, uint32_t to);

  const board::CounterWriter counters_;
  Memory headers_;
  Memory copies_;
  std::array<uint32_t, kDatagrams> places_;  // in copies_, of each datagram: those that wait keep theirs
  uint32_t count_ = 0;
  std::array<Datagram, kDatagrams> datagrams_{};
  std::array<iovec, size_t{2} * kDatagrams> pieces_{};
  std::array<Message, kMessages> messages_{};
  std::array<mmsghdr, kMessages> calls_{};
  std::atomic<int> refusal_{0};
};

}  // namespace sluice::udp
