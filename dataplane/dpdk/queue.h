// One worker's queue pair: mbufs inside, spans outside.
//
// Hot; one worker thread. Payload is not copied unless copy_payloads says so: a frame is a header mbuf
// chained to an mbuf without room of its own that points into the extent. Each extent has a reference count
// with one base reference that is never given up, so that the device side's count is what is above it; mbufs
// of a frame are freed by the device, by this same thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rte_mbuf.h>

#include <string>
#include <vector>

#include "dataplane/base/error.h"
#include "dataplane/dpdk/device_clock.h"
#include "dataplane/memif/driver.h"
#include "dataplane/memif/gate.h"

namespace sluice::dpdk {

struct QueueSetup {
  uint16_t port_id = 0;
  uint16_t queue_id = 0;
  int numa_node = -1;
  uint32_t frame_bytes_max = 0;
  uint32_t rx_room_bytes = 0;  // of one receive buffer, without headroom
  uint32_t rx_ring = 0;
  uint32_t rx_kept = 0;  // receive buffers that the driver has at a time; 0: as many as rx_ring
  uint32_t tx_ring = 0;
  uint32_t unowned_frames = 127;  // frames without owner that can be on their way
  uint32_t extents = 0;           // 0: every frame is a copy
  uint32_t extent_bytes = 0;
  bool chains = true;              // the device sends frames of several segments
  bool driver_copies = false;      // the driver copies payloads: they need no address for a device
  bool reclaims = false;           // rte_eth_tx_done_cleanup works
  bool reclaims_by_burst = false;  // an empty burst lets it free what was sent
  int send_time_at = -1;           // where an mbuf says when to send it; -1: the device cannot
  uint64_t send_time_flag = 0;     // that it says so
};

class Queue final : public memif::DriverQueue {
 public:
  explicit Queue(const QueueSetup& setup);
  ~Queue() override;
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  // Memory that `setup` will take.
  static uint64_t memory_bytes(const QueueSetup& setup);
  static uint64_t extent_alignment(uint32_t extent_bytes);
  // The port's shared buffer: its `share` is empty, and each queue counts its own references to it.
  void share_pattern(const net::Buffer& pattern);
  // From now on each frame is a copy. Before anything is sent.
  void copy_payloads() { setup_.chains = setup_.reclaims = false; }
  Status allocate();  // pools and extents, before the device starts
  rte_mempool* rx_pool() const { return rx_pool_; }
  // Once the device has started and has taken its own: enough for a burst to be received?
  bool has_rx_buffers() const;
  memif::Gate& gate() { return gate_; }

  uint32_t rx(net::RxFrame* frames, uint32_t capacity, net::RxSegmented* segmented) override;
  void release(const net::RxFrame* frames, uint32_t count) override;
  // An mbuf belongs to nobody; a frame that lies elsewhere is copied into one.
  bool keep(net::RxFrame* frame) override;
  uint8_t* tx_begin(uint32_t header_bytes, const uint8_t* payload, uint32_t payload_bytes,
                    const net::Buffer* owner, bool checksum_l4) override;
  void keep_time(uint64_t now_ns) override;
  uint32_t tx_flush() override;
  uint32_t tx_pending() const override { return pending_; }
  bool device_holds(const net::Buffer& buffer) override;
  std::span<const net::Buffer> buffers() const override { return buffers_; }
  std::span<uint8_t> buffer_memory() const override { return memory_; }
  void drop_pending() override;

 private:
  struct Share {
    rte_mbuf_ext_shared_info info;
    const uint8_t* data;
    rte_iova_t iova;
  };
  static void set_share(Share* share, const uint8_t* data);
  Share* share_of(const net::Buffer& buffer) {
    return buffer.share != nullptr ? static_cast<Share*>(buffer.share) : &pattern_share_;
  }
  Status allocate_extents();
  rte_mbuf* copied(uint32_t header_bytes, const uint8_t* payload, uint32_t payload_bytes);
  rte_mbuf* referring(uint32_t header_bytes, const uint8_t* payload, uint32_t payload_bytes,
                      const net::Buffer& owner);
  void prepare_checksums();

  QueueSetup setup_;
  memif::Gate gate_;  // open for ever, unless the device is a memif
  rte_mbuf* burst_[net::kBurst] = {};
  uint32_t pending_ = 0;
  bool checksum_wanted_ = false;
  DeviceClock clock_;
  uint64_t clock_asked_ns_ = 0;
  rte_mempool* rx_pool_ = nullptr;
  rte_mempool* header_pool_ = nullptr;
  rte_mempool* payload_pool_ = nullptr;  // mbufs without room
  rte_mempool* copy_pool_ = nullptr;
  Share pattern_share_{};
  std::vector<Share> shares_;
  std::vector<net::Buffer> buffers_;
  std::span<uint8_t> memory_;
};

}  // namespace sluice::dpdk
