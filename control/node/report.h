// What is said about the node: for operators, and for a scrape, which is one look without what costs.
//
// On control's one io_context thread. It changes nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/metrics/figures.h"
#include "control/node/export_watch.h"
#include "control/node/journal_watch.h"
#include "control/node/reception.h"
#include "control/node/sessions.h"
#include "control/node/trust_watch.h"

namespace sluice::node {

struct NodeInfo {
  std::string name;
  std::string fingerprint;
  bool dataplane_attached = false;
  board::PortInfo port{};  // of the last attach
  std::string crc_variant;
  std::vector<config::Export> exports;
  std::vector<identity::Peer> peers;    // that are pinned
  std::vector<identity::Offer> offers;  // of these
  std::string control_address;
  uint64_t longest_turn_ns = 0;  // of control's loop
  std::string longest_turn;      // what it did
  std::vector<async::KeyedPool::Wait> export_waits;
};

// How the dataplane stands, as the board tells; nothing: none is attached.
struct DataplaneState {
  uint64_t sandbox = 0;  // what it has given up: sandbox::State::bits()
  uint64_t refused_calls = 0;
  board::Link link = board::Link::kUnknown;
};

struct CounterValue {
  std::string name;
  std::string unit;
  std::string help;
  uint64_t value = 0;
};

class Report {
 public:
  // All of them outlive it.
  Report(std::shared_ptr<runtime::Services> services, const Sessions& sessions, const Reception& reception,
         const TrustWatch& trust, const ExportWatch& exports, const JournalWatch& journal);
  ~Report();
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;

  asio::awaitable<Result<NodeInfo>> info();
  Result<std::vector<CounterValue>> counters() const;  // kDaemonNotRunning without a dataplane
  std::optional<DataplaneState> dataplane_state() const;
  // Of a session that has flows; otherwise none.
  std::vector<metrics::LaneFigures> lanes(const std::string& id) const;
  metrics::NodeFigures figures() const;  // for a scrape; some 0.1 ms

 private:
  const std::shared_ptr<runtime::Services> services_;
  const Sessions& sessions_;
  const Reception& reception_;
  const TrustWatch& trust_;
  const ExportWatch& exports_;
  const JournalWatch& journal_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // coroutines may outlive this object
};

}  // namespace sluice::node
