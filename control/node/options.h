// What an operator asked for, checked and with the node's defaults filled in.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/words/lease.h"
#include "control/words/orders.h"
#include "control/words/terms.h"
#include "dataplane/base/config/config.h"
#include "dataplane/base/error.h"

namespace sluice::node {

// By an order of a third node (order_desk.h).
struct OrderTaken {
  std::string id;  // of the session
  transfer::Granted granted;
};

struct Wishes {
  std::string id;  // that whoever asks has made; empty: none
  std::string peer;
  std::vector<std::string> more_peers;  // of a get: that have the same sources
  std::vector<std::string> sources;
  std::string destination;
  options::Wish options;
  selection::Selection selection;
  std::optional<transfer::User> user;               // who wishes it as himself
  std::optional<transfer::LocalFiles> local_files;  // whose uid is not known yet
  std::optional<OrderTaken> order;
  std::optional<transfer::Lease> lease;
  std::shared_ptr<const digests::Expected> expected;  // what a list wants of names
  std::string source_node;                            // this node only orders it: that one sends
};

// kUsage: what is missing for a session at all.
Status check_wishes(transfer::Role role, const Wishes& wishes);
// kUsage: out of what is possible.
Status check_priority(int32_t priority);
Status check_limit(uint64_t limit_bps);  // 0: none
// kUsage names the option, what was found and what is allowed.
Result<transfer::Options> parse_options(const Wishes& wishes, const config::Node& node);

}  // namespace sluice::node
