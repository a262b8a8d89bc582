// What the manager says about the node: its identity, its port, its exports, its peers, its counters.
// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>

#include "control/session/manager.h"

namespace sluice::control {
namespace {

std::string ip_text(const uint8_t* ip, bool ip4) {
  if (std::all_of(ip, ip + 16, [](uint8_t byte) { return byte == 0; })) return "";
  char text[INET6_ADDRSTRLEN] = {};
  return ::inet_ntop(ip4 ? AF_INET : AF_INET6, ip4 ? ip + 12 : ip, text, sizeof text) != nullptr ? text : "";
}

}  // namespace

api::NodeReply Manager::node() const {
  const config::Node& config = context_->node;
  const board::PortInfo& port = context_->board->port();
  api::NodeReply reply;
  reply.set_name(config.name);
  reply.set_fingerprint(context_->identity.fingerprint);
  reply.set_version(SLUICE_VERSION);
  reply.set_dataplane_attached(context_->board->attached());
  reply.set_data_ip4(ip_text(port.ip4, true));
  reply.set_data_ip6(ip_text(port.ip6, false));
  reply.set_device(std::string(port.device));
  reply.set_frame_bytes_max(port.frame_bytes_max);
  reply.set_workers(port.workers);
  reply.set_hugepages(port.hugepages != 0);
  for (const config::Export& root : config.exports) {
    reply.add_exports(fmt::format("{} {} {}{}", root.name, root.path.string(), root.read ? "r" : "",
                                  root.write ? "w" : ""));
  }
  if (const Result<std::vector<identity::Peer>> peers = identity::load_peers(config.directory)) {
    for (const identity::Peer& known : *peers) {
      api::Peer* peer = reply.add_peers();
      peer->set_name(known.name);
      peer->set_address(known.address);
      peer->set_fingerprint(known.fingerprint);
    }
  }
  reply.set_control_address(config.listen);
  return reply;
}

api::CountersReply Manager::counters() const {
  api::CountersReply reply;
  const board::CounterInfo* table = board::counter_table();
  for (uint32_t i = 0; i < board::kCounters; ++i) {
    api::CountersReply::Counter* counter = reply.add_counters();
    counter->set_name(table[i].name);
    counter->set_unit(table[i].unit);
    counter->set_help(table[i].help);
    counter->set_value(context_->board->counter(static_cast<board::Counter>(i)));
  }
  return reply;
}

std::unique_ptr<SessionManager> make_session_manager(asio::io_context& io, const config::Node& node,
                                                     identity::Identity identity, exports::Exports exports,
                                                     std::unique_ptr<journal::Journal> journal) {
  return std::make_unique<Manager>(io, node, std::move(identity), std::move(exports), std::move(journal));
}

}  // namespace sluice::control
