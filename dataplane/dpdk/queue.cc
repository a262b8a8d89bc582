// Hot, except allocate. See queue.h.
// SPDX-License-Identifier: Apache-2.0
#define ALLOW_EXPERIMENTAL_API  // rte_eth_read_clock
#include "dataplane/dpdk/queue.h"

#include <fmt/format.h>
#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>
#include <rte_mbuf_dyn.h>
#include <rte_memory.h>
#include <rte_prefetch.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "dataplane/dpdk/eal.h"

namespace sluice::dpdk {

using memif::Gate;

namespace {

// Freed buffers are taken again first: the working set of a burst or two stays in L2.
constexpr uint32_t kPoolCache = 64;
constexpr uint32_t kEthernetHeaderBytes = 14;
constexpr uint32_t kUdpHeaderBytes = 8;
constexpr uint64_t kClockReadUsMax = 5;
constexpr uint64_t kClockAgainNs = 1'000'000;
constexpr uint64_t kMbufOverheadBytes = 256;  // of one pool element: rte_mbuf, element header, padding

uint32_t rx_kept(const QueueSetup& setup) { return setup.rx_kept != 0 ? setup.rx_kept : setup.rx_ring; }
uint32_t pool_size(uint32_t ring) { return std::bit_ceil(ring + net::kBurst + 2 * kPoolCache) - 1; }

// Never called: the base reference is ours until the memory is freed.
void keep_extent(void*, void*) {}

}  // namespace

Queue::Queue(const QueueSetup& setup) : setup_(setup) {}

Queue::~Queue() {
  drop_pending();
  rte_free(memory_.data());
  for (rte_mempool* pool : {rx_pool_, header_pool_, payload_pool_, copy_pool_}) rte_mempool_free(pool);
}

uint64_t Queue::extent_alignment(uint32_t extent_bytes) {
  return std::max(4096U, std::bit_ceil(extent_bytes));
}

uint64_t Queue::memory_bytes(const QueueSetup& setup) {
  const uint64_t rx = setup.rx_room_bytes + RTE_PKTMBUF_HEADROOM + kMbufOverheadBytes;
  const uint64_t copy = setup.frame_bytes_max + RTE_PKTMBUF_HEADROOM + kMbufOverheadBytes;
  const uint64_t header = RTE_PKTMBUF_HEADROOM + net::kHeaderRoomBytes + 2 * kMbufOverheadBytes;
  return uint64_t{setup.extents} * setup.extent_bytes + extent_alignment(setup.extent_bytes) +
         pool_size(rx_kept(setup)) * rx + pool_size(setup.tx_ring) * header + setup.unowned_frames * copy;
}

Status Queue::allocate() {
  const auto pool = [&](const char* name, uint32_t count, uint32_t cache, uint32_t room) {
    return rte_pktmbuf_pool_create(fmt::format("{}_{}_{}", name, setup_.port_id, setup_.queue_id).c_str(),
                                   count, cache, 0, static_cast<uint16_t>(room), setup_.numa_node);
  };
  rx_pool_ = pool("rx", pool_size(rx_kept(setup_)), kPoolCache, setup_.rx_room_bytes + RTE_PKTMBUF_HEADROOM);
  header_pool_ =
      pool("header", pool_size(setup_.tx_ring), kPoolCache, net::kHeaderRoomBytes + RTE_PKTMBUF_HEADROOM);
  payload_pool_ = pool("payload", pool_size(setup_.tx_ring), kPoolCache, 0);
  copy_pool_ =
      pool("copy", setup_.unowned_frames, net::kBurst, setup_.frame_bytes_max + RTE_PKTMBUF_HEADROOM);
  if (rx_pool_ == nullptr || header_pool_ == nullptr || payload_pool_ == nullptr || copy_pool_ == nullptr) {
    return Error{
        ErrorCode::kDevice,
        fmt::format("no memory for the packet buffers of worker {}: {}: raise [dataplane] memory_mib",
                    setup_.queue_id, rte_strerror(rte_errno))};
  }
  return allocate_extents();
}

Status Queue::allocate_extents() {
  if (setup_.extents == 0) return {};
  // Aligned to its size an extent lies in one huge page, so it is contiguous for the device in any IOVA mode.
  const size_t bytes = size_t{setup_.extents} * setup_.extent_bytes;
  auto* const base = static_cast<uint8_t*>(
      rte_malloc_socket("extents", bytes, extent_alignment(setup_.extent_bytes), setup_.numa_node));
  if (base == nullptr) {
    return Error{ErrorCode::kDevice, fmt::format("no memory for the {} extents of {} KiB of worker {}: raise "
                                                 "[dataplane] memory_mib or lower extents_per_worker",
                                                 setup_.extents, setup_.extent_bytes >> 10, setup_.queue_id)};
  }
  memory_ = {base, bytes};
  shares_.resize(setup_.extents);
  buffers_.resize(setup_.extents);
  for (uint32_t i = 0; i < setup_.extents; ++i) {
    uint8_t* const data = base + size_t{i} * setup_.extent_bytes;
    Share& share = shares_[i];
    set_share(&share, data);
    buffers_[i] = {.data = data, .bytes = setup_.extent_bytes, .share = &share};
  }
  return {};
}

void Queue::set_share(Share* share, const uint8_t* data) {
  share->info.free_cb = keep_extent;
  share->info.fcb_opaque = nullptr;
  rte_mbuf_ext_refcnt_set(&share->info, 1);
  share->data = data;
  share->iova = rte_mem_virt2iova(data);
}

bool Queue::has_rx_buffers() const { return rte_mempool_avail_count(rx_pool_) >= net::kBurst; }

void Queue::share_pattern(const net::Buffer& pattern) { set_share(&pattern_share_, pattern.data); }

uint32_t Queue::rx(net::RxFrame* frames, uint32_t capacity, net::RxSegmented* segmented) {
  *segmented = {};
  if (gate_.pass() != Gate::State::kOpen) [[unlikely]]
    return 0;
  rte_mbuf* taken[net::kBurst];
  const uint16_t count = rte_eth_rx_burst(setup_.port_id, setup_.queue_id, taken,
                                          static_cast<uint16_t>(std::min(capacity, net::kBurst)));
  uint32_t out = 0;
  for (uint16_t i = 0; i < count; ++i) {
    rte_mbuf* const frame = taken[i];
    if (frame->nb_segs != 1) [[unlikely]] {
      // The first buffer has room for all of it, though the driver did not use that.
      if (rte_pktmbuf_linearize(frame) != 0) {
        rte_pktmbuf_free(frame);
        ++segmented->dropped;
        continue;
      }
      ++segmented->joined;
    }
    const auto* data = rte_pktmbuf_mtod(frame, const uint8_t*);
    rte_prefetch0(data);
    frames[out++] = {
        .data = data,
        .length = frame->data_len,
        .udp_checksum_good = (frame->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) == RTE_MBUF_F_RX_L4_CKSUM_GOOD,
        .handle = frame};
  }
  return out;
}

void Queue::release(const net::RxFrame* frames, uint32_t count) {
  while (count > 0) {
    rte_mbuf* freed[net::kBurst];
    const uint32_t now = std::min(count, net::kBurst);
    for (uint32_t i = 0; i < now; ++i) freed[i] = static_cast<rte_mbuf*>(frames[i].handle);
    rte_pktmbuf_free_bulk(freed, now);
    frames += now;
    count -= now;
  }
}

bool Queue::keep(net::RxFrame* frame) {
  if (frame->handle != nullptr) return true;
  rte_mbuf* const own = frame->length <= setup_.rx_room_bytes ? rte_pktmbuf_alloc(rx_pool_) : nullptr;
  if (own == nullptr) return false;
  auto* const data = rte_pktmbuf_mtod(own, uint8_t*);
  memcpy(data, frame->data, frame->length);
  frame->data = data;
  frame->handle = own;
  return true;
}

rte_mbuf* Queue::copied(uint32_t header_bytes, const uint8_t* payload, uint32_t payload_bytes) {
  rte_mbuf* const frame = rte_pktmbuf_alloc(copy_pool_);
  if (frame == nullptr) [[unlikely]]
    return nullptr;
  if (payload_bytes > 0) {
    memcpy(rte_pktmbuf_mtod_offset(frame, uint8_t*, header_bytes), payload, payload_bytes);
  }
  frame->data_len = static_cast<uint16_t>(header_bytes + payload_bytes);
  frame->pkt_len = header_bytes + payload_bytes;
  return frame;
}

rte_mbuf* Queue::referring(uint32_t header_bytes, const uint8_t* payload, uint32_t payload_bytes,
                           const net::Buffer& owner) {
  rte_mbuf* const header = rte_pktmbuf_alloc(header_pool_);
  if (header == nullptr) [[unlikely]]
    return nullptr;
  rte_mbuf* const body = rte_pktmbuf_alloc(payload_pool_);
  if (body == nullptr) [[unlikely]] {
    rte_pktmbuf_free(header);
    return nullptr;
  }
  Share* const share = share_of(owner);
  const rte_iova_t address =
      setup_.driver_copies ? 0 : share->iova + static_cast<uint64_t>(payload - share->data);
  // No atomic addition is needed: this thread alone attaches, and detaches in the device's bursts.
  rte_mbuf_ext_refcnt_set(&share->info, static_cast<uint16_t>(rte_mbuf_ext_refcnt_read(&share->info) + 1));
  rte_pktmbuf_attach_extbuf(body, const_cast<uint8_t*>(payload), address,
                            static_cast<uint16_t>(payload_bytes), &share->info);
  body->data_len = static_cast<uint16_t>(payload_bytes);
  body->pkt_len = payload_bytes;
  header->data_len = static_cast<uint16_t>(header_bytes);
  header->pkt_len = header_bytes + payload_bytes;
  header->nb_segs = 2;
  header->next = body;
  return header;
}

uint8_t* Queue::tx_begin(uint32_t header_bytes, const uint8_t* payload, uint32_t payload_bytes,
                         const net::Buffer* owner, bool checksum_l4) {
  if (pending_ == net::kBurst || header_bytes + payload_bytes > setup_.frame_bytes_max) return nullptr;
  rte_mbuf* const frame = owner != nullptr && setup_.chains && payload_bytes > 0
                              ? referring(header_bytes, payload, payload_bytes, *owner)
                              : copied(header_bytes, payload, payload_bytes);
  if (frame == nullptr) [[unlikely]]
    return nullptr;
  if (checksum_l4) {
    frame->ol_flags |= RTE_MBUF_F_TX_UDP_CKSUM;
    checksum_wanted_ = true;
  }
  if (send_at_ns_ != 0 && sends_at_times_) {
    *RTE_MBUF_DYNFIELD(frame, setup_.send_time_at, rte_mbuf_timestamp_t*) = clock_.ticks_at(send_at_ns_);
    frame->ol_flags |= setup_.send_time_flag;
  }
  burst_[pending_++] = frame;
  return rte_pktmbuf_mtod(frame, uint8_t*);
}

void Queue::keep_time(uint64_t now_ns) {
  if (setup_.send_time_at < 0 || !clock_.due(now_ns) || now_ns < clock_asked_ns_ + kClockAgainNs) return;
  clock_asked_ns_ = now_ns;
  uint64_t ticks = 0;
  const uint64_t before = rte_rdtsc();
  if (rte_eth_read_clock(setup_.port_id, &ticks) != 0) {  // a device may lose its clock for a while
    sends_at_times_ = false;
    return;
  }
  // If this thread was interrupted in between, the two readings are not of one moment.
  if (rte_rdtsc() - before > rte_get_tsc_hz() / 1'000'000 * kClockReadUsMax) return;
  clock_.observe(now_ns, ticks);
  sends_at_times_ = clock_.known();
}

// The headers are complete only now.
void Queue::prepare_checksums() {
  for (uint32_t i = 0; i < pending_; ++i) {
    rte_mbuf* const frame = burst_[i];
    if ((frame->ol_flags & RTE_MBUF_F_TX_UDP_CKSUM) == 0) continue;
    const bool ip4 = (*rte_pktmbuf_mtod_offset(frame, const uint8_t*, kEthernetHeaderBytes) >> 4) == 4;
    frame->l2_len = kEthernetHeaderBytes;
    frame->l3_len = ip4 ? 20 : 40;
    frame->l4_len = kUdpHeaderBytes;
    frame->ol_flags |= ip4 ? RTE_MBUF_F_TX_IPV4 : RTE_MBUF_F_TX_IPV6;
  }
  // Some devices want the pseudo-header's sum in the field, which this call sees to. A frame that it refuses
  // is dropped, since it would stay first in line for ever.
  uint32_t ready = 0;
  while (ready < pending_) {
    ready += rte_eth_tx_prepare(setup_.port_id, setup_.queue_id, burst_ + ready,
                                static_cast<uint16_t>(pending_ - ready));
    if (ready == pending_) break;
    rte_pktmbuf_free(burst_[ready]);
    std::copy(burst_ + ready + 1, burst_ + pending_, burst_ + ready);
    --pending_;
  }
  checksum_wanted_ = false;
}

void Queue::drop_pending() {
  for (uint32_t i = 0; i < pending_; ++i) rte_pktmbuf_free(burst_[i]);
  pending_ = 0;
}

uint32_t Queue::tx_flush() {
  if (pending_ == 0) return 0;
  const Gate::State state = gate_.pass();
  if (state != Gate::State::kOpen) [[unlikely]] {
    const uint32_t not_taken = pending_;
    if (state == Gate::State::kOffline) drop_pending();
    return not_taken;
  }
  if (checksum_wanted_) prepare_checksums();
  const uint16_t sent =
      rte_eth_tx_burst(setup_.port_id, setup_.queue_id, burst_, static_cast<uint16_t>(pending_));
  std::copy(burst_ + sent, burst_ + pending_, burst_);
  pending_ -= sent;
  return pending_;
}

bool Queue::device_holds(const net::Buffer& buffer) {
  const auto* const info = &share_of(buffer)->info;
  if (rte_mbuf_ext_refcnt_read(info) == 1) return false;
  if (gate_.pass() != Gate::State::kOpen) return true;
  if (setup_.reclaims) {
    rte_eth_tx_done_cleanup(setup_.port_id, setup_.queue_id, 0);
  } else if (setup_.reclaims_by_burst) {
    rte_eth_tx_burst(setup_.port_id, setup_.queue_id, burst_, 0);
  }
  return rte_mbuf_ext_refcnt_read(info) != 1;
}

}  // namespace sluice::dpdk
