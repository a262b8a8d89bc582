// Datagrams of one worker out of its sockets, in as few system calls as can be.
//
// The kernel hands over what arrived together and has one size as one piece (UDP_GRO), which is cut here.
// A burst comes from one socket; all of them have their turns.
//
// Hot; one thread: no allocation, lock or log, except watch and forget.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <span>

#include "dataplane/board/board.h"
#include "dataplane/board/counters.h"
#include "dataplane/udp/memory.h"
#include "dataplane/udp/path.h"

namespace sluice::udp {

class Receiver {
 public:
  explicit Receiver(board::CounterWriter counters);

  int watch(SocketPath& path);  // 0, or errno
  void forget(SocketPath& path);
  // net::DatagramQueue's receive and release.
  uint32_t receive(std::span<net::RxDatagram, net::kBurst> datagrams);
  void release();
  // What so many pieces held that the kernel dropped, if they were as those taken since the last call.
  uint64_t datagrams_in(uint64_t pieces);
  // Returns after so long, or when a datagram has arrived.
  void sleep(uint64_t ns);

 private:
  static constexpr uint32_t kMessages = net::kBurst;  // in one call
  // What the kernel joins is at most 64 KiB. A little apart, so that their beginnings share no cache set.
  static constexpr uint32_t kRoomBytes = 65536;
  static constexpr uint32_t kStrideBytes = kRoomBytes + 4096 + 64;
  static constexpr uint32_t kControlBytes = 2 * CMSG_SPACE(sizeof(int));
  // One piece as the kernel gave it.
  struct Message {
    uint32_t bytes = 0;
    uint32_t datagram_bytes = 0;  // of each in it, the last may be shorter
  };

  bool refill();
  bool find_ready();
  uint32_t take(SocketPath& path);
  bool inspect(uint32_t i, const SocketPath& path);
  uint8_t* room(uint32_t i) { return rooms_.data() + size_t{i} * kStrideBytes; }

  const board::CounterWriter counters_;
  UniqueFd epoll_;
  Memory rooms_;
  // Sockets that had something when last asked, in turn.
  std::array<SocketPath*, board::kFlowsMax> ready_{};
  uint32_t ready_count_ = 0;
  uint32_t watched_ = 0;
  // What was taken out of the socket of reading_, and how far it was cut.
  SocketPath* reading_ = nullptr;
  std::array<Message, kMessages> messages_{};
  uint32_t message_ = 0;
  uint32_t message_count_ = 0;
  uint32_t at_ = 0;  // bytes of messages_[message_] that were handed on
  uint32_t wanted_ = kMessages;
  uint64_t pieces_taken_ = 0;  // since the last call of datagrams_in, and what they held
  uint64_t datagrams_taken_ = 0;
  uint64_t handed_ = 0;  // datagrams and bytes since the last release
  uint64_t handed_bytes_ = 0;
  std::array<mmsghdr, kMessages> calls_{};
  std::array<iovec, kMessages> pieces_{};
  std::array<sockaddr_storage, kMessages> sources_{};
  struct Control {
    alignas(cmsghdr) std::array<uint8_t, kControlBytes> bytes;
  };
  std::array<Control, kMessages> controls_{};
  std::array<epoll_event, board::kFlowsMax> events_{};
};

}  // namespace sluice::udp
