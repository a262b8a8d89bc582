// What the device is told: a loopback of DPDK's (net_ring hands mbufs over as they are) that seems to have a
// clock and to send by it, since no device here does: this program's two functions stand before DPDK's.
// SPDX-License-Identifier: Apache-2.0
#define ALLOW_EXPERIMENTAL_API  // rte_eth_read_clock
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <rte_ethdev.h>
#include <rte_mbuf_dyn.h>

#include "dataplane/dpdk/device_clock.h"
#include "dataplane/dpdk/port_fixture_for_test.h"

namespace {

bool device_has_clock = false;
uint64_t device_ticks = 1000;

}  // namespace

extern "C" int rte_eth_dev_info_get(uint16_t port_id, rte_eth_dev_info* info) {
  static const auto real =
      reinterpret_cast<decltype(&rte_eth_dev_info_get)>(dlsym(RTLD_NEXT, "rte_eth_dev_info_get"));
  const int code = real(port_id, info);
  if (device_has_clock) {
    info->driver_name = "mlx5_pci";
    info->tx_offload_capa |= RTE_ETH_TX_OFFLOAD_SEND_ON_TIMESTAMP;
  }
  return code;
}

extern "C" int rte_eth_read_clock(uint16_t, uint64_t* ticks) {
  *ticks = device_ticks;
  return device_has_clock ? 0 : -ENOTSUP;
}

namespace sluice::dpdk {
namespace {

constexpr uint64_t kNow = 5'000'000'000;

class SendTimeTest : public PortTest {
 protected:
  config::Node looped() const {
    config::Node each = node(true);
    each.device = "net_ring0";
    each.mtu = 1500;
    return each;
  }
  // In a process of its own, on the worker's thread.
  static int with_queue(const config::Node& node, const Wire& wire,
                        const std::function<void(net::FrameQueue&)>& body) {
    auto port = open_port(node, wire);
    if (port == nullptr) return 1;
    if (!port->launch([&](uint32_t) { body(port->frames(0)); })) return 2;
    port->join();
    return 0;
  }
  // Sends two frames for these times; says what their mbufs say when they come back.
  static void send(net::FrameQueue& queue, const Wire& wire, uint64_t first_ns, uint64_t second_ns) {
    for (const uint64_t ns : {first_ns, second_ns}) {
      queue.send_at(ns);
      append(queue, {.kind = 3, .number = ns == first_ns ? 1U : 2U, .length = 100});  // chained, and a copy
    }
    queue.tx_flush();
    rte_mbuf* mbufs[net::kBurst];
    const uint16_t count = rte_eth_rx_burst(0, 0, mbufs, net::kBurst);
    const int at = rte_mbuf_dynfield_lookup(RTE_MBUF_DYNFIELD_TIMESTAMP_NAME, nullptr);
    const int bit = rte_mbuf_dynflag_lookup(RTE_MBUF_DYNFLAG_TX_TIMESTAMP_NAME, nullptr);
    for (uint16_t i = 0; i < count; ++i) {
      const bool told = bit >= 0 && (mbufs[i]->ol_flags & (1ULL << bit)) != 0;
      wire.say(told ? std::to_string(*RTE_MBUF_DYNFIELD(mbufs[i], at, uint64_t*)) : "at once");
      rte_pktmbuf_free(mbufs[i]);
    }
  }
};

TEST_F(SendTimeTest, FramesCarryTheirTimeInTheDevicesTicks) {
  Child child([&](const Wire& wire) {
    device_has_clock = true;
    return with_queue(looped(), wire, [&](net::FrameQueue& queue) {
      uint64_t now_ns = kNow;
      queue.keep_time(now_ns);
      wire.say(queue.sends_at_times() ? "too early" : "not known yet");
      while (!queue.sends_at_times()) {  // a reading in which this thread lost its processor does not count
        now_ns += DeviceClock::kObserveNs;
        device_ticks = 1000 + 4 * (now_ns - kNow);
        queue.keep_time(now_ns);
      }
      wire.say(std::to_string(device_ticks));
      send(queue, wire, now_ns + 100, now_ns + 7000);
      send(queue, wire, 0, now_ns + 8000);
    });
  });
  EXPECT_EQ(child.line(), "not known yet");
  const uint64_t base = std::stoull(child.line());
  EXPECT_EQ(child.line(), std::to_string(base + 4 * 100));
  EXPECT_EQ(child.line(), std::to_string(base + 4 * 7000));
  EXPECT_EQ(child.line(), "at once");
  EXPECT_EQ(child.line(), std::to_string(base + 4 * 8000));
  EXPECT_EQ(child.exit_status(), 0);
}

TEST_F(SendTimeTest, OtherDevicesSendAtOnce) {
  Child child([&](const Wire& wire) {
    return with_queue(looped(), wire, [&](net::FrameQueue& queue) {
      for (uint64_t ns = kNow; ns < kNow + 10 * DeviceClock::kObserveNs; ns += DeviceClock::kObserveNs) {
        queue.keep_time(ns);
      }
      wire.say(queue.sends_at_times() ? "by times" : "not by times");
      send(queue, wire, kNow, kNow + 1);
    });
  });
  EXPECT_EQ(child.line(), "not by times");
  EXPECT_EQ(child.line(), "at once");
  EXPECT_EQ(child.line(), "at once");
  EXPECT_EQ(child.exit_status(), 0);
}

}  // namespace
}  // namespace sluice::dpdk
