// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dpdk/flow_rules.h"

#include <rte_byteorder.h>
#include <rte_flow.h>

#include "dataplane/board/board.h"

namespace sluice::dpdk {
namespace {

bool make_rule(uint16_t port_id, rte_flow_item_type ip, uint16_t udp_port, uint16_t queue) {
  const rte_flow_attr attributes{.ingress = 1};
  rte_flow_item_udp lane{};
  lane.hdr.dst_port = rte_cpu_to_be_16(udp_port);
  rte_flow_item_udp only_destination{};
  only_destination.hdr.dst_port = UINT16_MAX;
  const rte_flow_item pattern[] = {
      {.type = RTE_FLOW_ITEM_TYPE_ETH},
      {.type = ip},
      {.type = RTE_FLOW_ITEM_TYPE_UDP, .spec = &lane, .last = nullptr, .mask = &only_destination},
      {.type = RTE_FLOW_ITEM_TYPE_END}};
  const rte_flow_action_queue to{.index = queue};
  const rte_flow_action actions[] = {{.type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &to},
                                     {.type = RTE_FLOW_ACTION_TYPE_END, .conf = nullptr}};
  rte_flow_error why{};
  return rte_flow_validate(port_id, &attributes, pattern, actions, &why) == 0 &&
         rte_flow_create(port_id, &attributes, pattern, actions, &why) != nullptr;
}

}  // namespace

FlowRules steer_lanes(uint16_t port_id, const LanePorts& lanes) {
  FlowRules rules;
  if (lanes.workers < 2) return rules;
  struct Family {
    rte_flow_item_type ip;
    bool wanted;
    bool takes_more = true;
  };
  Family families[] = {{RTE_FLOW_ITEM_TYPE_IPV4, lanes.ip4}, {RTE_FLOW_ITEM_TYPE_IPV6, lanes.ip6}};
  for (uint32_t i = 0; i < board::kFlowsMax && lanes.udp_port_base + i <= UINT16_MAX; ++i) {
    const auto udp_port = static_cast<uint16_t>(lanes.udp_port_base + i);
    const auto queue = static_cast<uint16_t>(i % lanes.workers);
    for (Family& family : families) {
      if (!family.wanted) continue;
      ++rules.wanted;
      family.takes_more = family.takes_more && make_rule(port_id, family.ip, udp_port, queue);
      if (family.takes_more) ++rules.made;
    }
  }
  return rules;
}

}  // namespace sluice::dpdk
