// What an operator asked for, checked and with the node's defaults filled in.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "control/words/terms.h"
#include "dataplane/base/config/config.h"
#include "dataplane/base/error.h"

namespace sluice::node {

// Zero or empty: the node's configuration decides.
struct Wishes {
  std::string peer;
  std::vector<std::string> sources;
  std::string destination;
  uint32_t lanes = 0;
  uint64_t rate_bps = 0;
  std::string crc;         // "crc64", "crc32c"; "none", "read"
  std::string protection;  // "aes-128-gcm", "aes-256-gcm", "crc"; empty: the node's
  bool overwrite = false;
  bool verify = false;
  bool mkdir = false;
  std::string ip;  // "4", "6"
  uint32_t chunk_bytes = 0;
  bool chunk_auto = false;  // whatever brings most, chunk_bytes or less
  std::string mode;         // "adaptive", "fixed", "cubic"
  std::string fec;          // "off", "auto", "rs", "raptorq"; empty: the node's
  std::optional<double> expected_loss;
  uint64_t min_rate_bps = 0;
  uint32_t timeout_s = 0;
  int32_t priority = 0;
  std::string log_level;  // "off", "events", "packets"; empty: events
  int64_t deadline_unix_ns = 0;
  std::string deadline_policy;  // "refuse", "warn", "stop"
  selection::Selection selection;
  std::optional<transfer::User> user;               // who wishes it as himself
  std::optional<transfer::LocalFiles> local_files;  // whose uid is not known yet
};

inline constexpr uint32_t kChunkBytesDefault = 8192;

// kUsage: what is missing for a session at all.
Status check_wishes(transfer::Role role, const Wishes& wishes);
// kUsage: out of what is possible.
Status check_priority(int32_t priority);
// kUsage names the option, what was found and what is allowed.
Result<transfer::Options> parse_options(const Wishes& wishes, const config::Node& node);

}  // namespace sluice::node
