// What is asked of a device: this program's rte_flow_* stand before DPDK's, since no device here knows rules.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dpdk/flow_rules.h"

#include <gtest/gtest.h>
#include <rte_byteorder.h>
#include <rte_flow.h>

#include <cerrno>
#include <map>
#include <utility>

#include "dataplane/board/board.h"

namespace {

using Lane = std::pair<bool, uint16_t>;  // IPv6?, UDP port

struct DeviceWithRules {
  uint32_t room = 0;
  bool knows_ip6 = true;
  std::map<Lane, uint16_t> queues;
};

DeviceWithRules* device = nullptr;  // of the test that runs; without: as DPDK says of a device without rules

// The lane that a rule takes, if it is exactly what the documentation of rte_flow wants for a UDP port.
bool parse(const rte_flow_attr* attributes, const rte_flow_item* pattern, Lane* lane) {
  if (attributes->ingress != 1 || attributes->egress != 0) return false;
  if (pattern[0].type != RTE_FLOW_ITEM_TYPE_ETH || pattern[0].spec != nullptr) return false;
  lane->first = pattern[1].type == RTE_FLOW_ITEM_TYPE_IPV6;
  if (!lane->first && pattern[1].type != RTE_FLOW_ITEM_TYPE_IPV4) return false;
  if (pattern[1].spec != nullptr || pattern[2].type != RTE_FLOW_ITEM_TYPE_UDP || pattern[2].last != nullptr)
    return false;
  const auto* const spec = static_cast<const rte_flow_item_udp*>(pattern[2].spec);
  const auto* const mask = static_cast<const rte_flow_item_udp*>(pattern[2].mask);
  if (mask->hdr.dst_port != 0xFFFF || mask->hdr.src_port != 0 || mask->hdr.dgram_len != 0) return false;
  lane->second = rte_be_to_cpu_16(spec->hdr.dst_port);
  return pattern[3].type == RTE_FLOW_ITEM_TYPE_END;
}

}  // namespace

extern "C" int rte_flow_validate(uint16_t, const rte_flow_attr* attributes, const rte_flow_item pattern[],
                                 const rte_flow_action actions[], rte_flow_error*) {
  Lane lane;
  if (device == nullptr) return -ENOSYS;
  const bool good = parse(attributes, pattern, &lane) && actions[0].type == RTE_FLOW_ACTION_TYPE_QUEUE &&
                    actions[1].type == RTE_FLOW_ACTION_TYPE_END;
  return good ? 0 : -EINVAL;
}

extern "C" rte_flow* rte_flow_create(uint16_t, const rte_flow_attr* attributes, const rte_flow_item pattern[],
                                     const rte_flow_action actions[], rte_flow_error*) {
  Lane lane;
  if (device == nullptr || device->queues.size() == device->room || !parse(attributes, pattern, &lane) ||
      (lane.first && !device->knows_ip6)) {
    return nullptr;
  }
  device->queues[lane] = static_cast<const rte_flow_action_queue*>(actions[0].conf)->index;
  return reinterpret_cast<rte_flow*>(device);
}

namespace sluice::dpdk {
namespace {

class FlowRulesTest : public testing::Test {
 protected:
  FlowRulesTest() { device = &device_; }
  ~FlowRulesTest() override { device = nullptr; }
  DeviceWithRules device_{.room = 1000};
};

TEST_F(FlowRulesTest, EachLaneGoesToItsWorkersQueue) {
  const FlowRules rules = steer_lanes(0, {.udp_port_base = 47000, .workers = 3, .ip4 = true, .ip6 = true});
  EXPECT_EQ(rules.wanted, 2 * board::kFlowsMax);
  EXPECT_EQ(rules.made, rules.wanted);
  ASSERT_EQ(device_.queues.size(), rules.wanted);
  for (const auto& [lane, queue] : device_.queues) EXPECT_EQ(queue, (lane.second - 47000) % 3);
}

TEST_F(FlowRulesTest, OnlyForAddressesThatThePortHas) {
  EXPECT_EQ(steer_lanes(0, {.udp_port_base = 47000, .workers = 2, .ip4 = false, .ip6 = true}).made,
            board::kFlowsMax);
  for (const auto& [lane, queue] : device_.queues) EXPECT_TRUE(lane.first);
}

TEST_F(FlowRulesTest, NoneForOneWorker) {
  const FlowRules rules = steer_lanes(0, {.udp_port_base = 47000, .workers = 1, .ip4 = true, .ip6 = true});
  EXPECT_EQ(rules.wanted, 0U);
  EXPECT_TRUE(device_.queues.empty());
}

TEST_F(FlowRulesTest, AFullTableTakesTheLowerPorts) {
  device_.room = 10;
  const FlowRules rules = steer_lanes(0, {.udp_port_base = 47000, .workers = 2, .ip4 = true, .ip6 = false});
  EXPECT_EQ(rules.made, 10U);
  EXPECT_GT(rules.wanted, rules.made);
  EXPECT_EQ(device_.queues.rbegin()->first.second, 47009);
}

TEST_F(FlowRulesTest, ADeviceThatKnowsOneFamilyTakesAllOfThat) {
  device_.knows_ip6 = false;
  const FlowRules rules = steer_lanes(0, {.udp_port_base = 47000, .workers = 2, .ip4 = true, .ip6 = true});
  EXPECT_EQ(rules.made, board::kFlowsMax);
  EXPECT_EQ(rules.wanted, 2 * board::kFlowsMax);
}

TEST_F(FlowRulesTest, PortsEndWhereTheyEnd) {
  const FlowRules rules = steer_lanes(0, {.udp_port_base = 65530, .workers = 2, .ip4 = true, .ip6 = false});
  EXPECT_EQ(rules.made, 6U);
  EXPECT_EQ(rules.wanted, 6U);
}

TEST_F(FlowRulesTest, ADeviceWithoutRulesIsNoError) {
  device = nullptr;
  EXPECT_EQ(steer_lanes(0, {.udp_port_base = 47000, .workers = 2, .ip4 = true, .ip6 = true}).made, 0U);
}

}  // namespace
}  // namespace sluice::dpdk
