// What is well with a node and its host, what could be better, and what will not work: each with the command
// or the key that mends it.
//
// Pure: a function of the facts.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/doctor/facts.h"

namespace sluice::doctor {

enum class Level : uint8_t {
  kPass,
  kWarn,  // it works, slower or less safely than it could
  kFail,  // it does not work
};
std::string_view level_name(Level level);  // "pass", "warn", "fail"

struct Finding {
  std::string check;  // what was looked at, e.g. "hugepages"; stable, used in --json
  Level level = Level::kPass;
  std::string text;    // what was found
  std::string remedy;  // a command or a key; empty: none is needed
};

std::vector<Finding> check(const Facts& facts);
// The worst of all.
Level worst(const std::vector<Finding>& findings);

// ---- each look, in the order of check() ----
void check_node(const Facts& facts, std::vector<Finding>& out);
void check_memory(const Facts& facts, std::vector<Finding>& out);
void check_device(const Facts& facts, std::vector<Finding>& out);
void check_ports(const Facts& facts, std::vector<Finding>& out);
void check_cores(const Facts& facts, std::vector<Finding>& out);
void check_kernel(const Facts& facts, std::vector<Finding>& out);
void check_exports(const Facts& facts, std::vector<Finding>& out);
void check_daemons(const Facts& facts, std::vector<Finding>& out);
void check_audit_log(const Facts& facts, std::vector<Finding>& out);
void check_users(const Facts& facts, std::vector<Finding>& out);  // users_checks.cc
void check_certificates(const Facts& facts, std::vector<Finding>& out);
void check_peers(const Facts& facts, std::vector<Finding>& out);
void check_peer_look(const Facts& facts, std::vector<Finding>& out);  // peer_checks.cc

}  // namespace sluice::doctor
