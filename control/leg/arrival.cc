// SPDX-License-Identifier: Apache-2.0
#include "control/leg/arrival.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace sluice::transfer {
namespace {

std::string ports_text(const std::vector<uint16_t>& ports) {
  if (ports.empty()) return "UDP ports";
  const auto [least, most] = std::ranges::minmax(ports);
  return least == most ? fmt::format("UDP port {}", least) : fmt::format("UDP ports {} to {}", least, most);
}

}  // namespace

bool any_arrived(const board::FlowFigures& figures, uint64_t bytes_done) {
  return figures.peer_datagrams != 0 || figures.peer_bytes_received != 0 || bytes_done != 0;
}

void Arrival::begin(Ends ends) { *this = {}, ends_ = std::move(ends); }

void Arrival::look(bool missed, uint64_t now_ns) {
  if (!missed) since_ns_ = 0;
  if (missed && since_ns_ == 0) since_ns_ = now_ns;
  none_ = missed && now_ns - since_ns_ >= kMissedNs;
}

void Arrival::look_at_source(const board::FlowFigures& figures, uint64_t bytes_done, uint64_t now_ns) {
  sent_ = figures.sent();
  answered_ = figures.statuses != 0;
  look(sent_ != 0 && !any_arrived(figures, bytes_done), now_ns);
}

void Arrival::look_at_destination(const board::FlowFigures& figures, bool source_blames_network,
                                  uint64_t now_ns) {
  receives_ = true;
  look(figures.chunks == 0 && source_blames_network, now_ns);
}

std::string Arrival::waiting_for() const {
  if (!none_) return "";
  if (receives_)
    return fmt::format("network (nothing has arrived at this node's {}: let UDP through its firewall)",
                       ports_text(ends_.own_ports));
  return answered_ ? fmt::format("network (no data arrives at {}'s {}: let UDP through its firewall)",
                                 ends_.peer, ports_text(ends_.peer_ports))
                   : fmt::format("network (no answer comes from {}'s {}: let UDP through the firewalls)",
                                 ends_.peer, ports_text(ends_.peer_ports));
}

std::vector<std::string> Arrival::evidence() const {
  if (!none_ || receives_) return {};
  const std::string what = answered_ ? "no data arrives at" : "no answer comes from";
  std::vector<std::string> lines{
      fmt::format("{} {}'s {} (sent {} datagrams)", what, ends_.peer, ports_text(ends_.peer_ports), sent_)};
  lines.push_back(answered_
                      ? fmt::format("let UDP through the firewall of {}, and those on the path", ends_.peer)
                      : fmt::format("let UDP through the firewalls: to {}'s {}, and to this node's {}",
                                    ends_.peer, ports_text(ends_.peer_ports), ports_text(ends_.own_ports)));
  return lines;
}

}  // namespace sluice::transfer
