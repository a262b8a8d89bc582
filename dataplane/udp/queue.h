// One worker's datagrams over ordinary UDP sockets, a socket for each flow.
//
// The kernel has the way to the peer, the headers, the checksums and the queues. Needs no device, no
// privileges and no hugepages.
//
// Hot; one worker thread: no allocation, lock or log, except open_path.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "dataplane/udp/receiver.h"
#include "dataplane/udp/sender.h"

namespace sluice::udp {

// What workers have to say to people; the main thread takes it. Any thread; cold.
class News {
 public:
  void say(std::string text);
  std::vector<std::string> take();

 private:
  std::mutex mutex_;
  std::vector<std::string> texts_;
};

class Queue final : public net::DatagramQueue {
 public:
  Queue(std::vector<net::Buffer> buffers, std::span<uint8_t> memory, News& news,
        board::CounterWriter counters);

  int open_path(const net::PathConfig& config, std::unique_ptr<net::Path>* path) override;
  uint32_t receive(std::span<net::RxDatagram, net::kBurst> datagrams) override {
    return receiver_.receive(datagrams);
  }
  // A socket is of one worker, so nothing is ever another's.
  bool keep(net::RxDatagram*) override { return false; }
  void release() override { receiver_.release(); }
  void release_kept(const net::RxDatagram&) override {}
  net::TxDatagram begin(net::Path& path, std::span<const uint8_t> payload, const net::Buffer* owner,
                        uint64_t send_at_ns) override;
  void flush() override { sender_.flush(now_ns_); }
  bool device_holds(const net::Buffer& buffer) override { return sender_.holds(buffer); }
  void keep_time(uint64_t now_ns) override;
  void sleep(uint64_t ns) override { receiver_.sleep(ns); }
  std::span<const net::Buffer> buffers() const override { return buffers_; }
  std::span<uint8_t> buffer_memory() const override { return memory_; }

  // Any thread: errno of the last datagram that the kernel refused; 0: none since the last call.
  int take_refusal() { return sender_.take_refusal(); }

 protected:
  bool resolve(net::Path& path, uint64_t now_ns) override;
  void moved(net::Path& path) override;
  void finish(net::Path&, std::span<const uint8_t>, net::TxDatagram) override {}

 private:
  friend struct SocketPath;
  void forget(SocketPath& path);
  void count_drops();

  const std::vector<net::Buffer> buffers_;
  const std::span<uint8_t> memory_;
  News& news_;
  const board::CounterWriter counters_;
  Sender sender_;
  Receiver receiver_;
  std::vector<SocketPath*> paths_;
  uint64_t now_ns_ = 0;
  uint64_t next_look_ns_ = 0;  // at the sockets' drops
  uint64_t tx_frames_ = 0;
  uint64_t tx_bytes_ = 0;
};

}  // namespace sluice::udp
