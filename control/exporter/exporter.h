// Serves the metrics of a node over HTTP, for Prometheus, on a thread of its own (http_server.h).
//
// What it tells is a copy (control/exporter/snapshots.h): nothing here touches what belongs to control's
// loop, and no scraper holds it up.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/io_context.hpp>
#include <memory>
#include <string>

#include "control/exporter/snapshots.h"
#include "dataplane/base/config/config.h"
#include "dataplane/base/error.h"
#include "dataplane/base/unique_fd.h"

namespace sluice::exporter {

class Exporter {
 public:
  virtual ~Exporter() = default;  // stops; waits for scrapes that are being answered
  // "ADDRESS:PORT" where it listens, numeric.
  virtual const std::string& address() const = 0;
  // Whoever waits for the loop does not any more: to be called before the loop ends.
  virtual void stop_waiting() = 0;
};

// Serves http://ADDRESS/metrics at [control] metrics_listen, which is not "none". kConfiguration when
// the address is none of this host, or is taken. Warns in the log where others than this host may reach
// it.
Result<std::unique_ptr<Exporter>> start(asio::io_context& io, const config::Node& node, Snapshots::Look look);

// Where "host:port" is.
struct ListenAddress {
  std::string text;       // numeric, "a.b.c.d:port" or "[v6]:port"
  bool loopback = false;  // only this host reaches it
  UniqueFd listening;     // a socket that does
};
// Blocks while a name is looked up. kConfiguration when nobody can listen there.
Result<ListenAddress> find_address(const std::string& listen);

}  // namespace sluice::exporter
