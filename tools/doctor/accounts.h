// Users and groups of this host, as its name services have them. They are asked by getent(1): a program that
// is linked statically, as the command is, cannot load the services' libraries (libnss_systemd ends it).
//
// Blocks, for kAnswerMs at most: a directory of users may be on the network.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace sluice::doctor {

inline constexpr int kAnswerMs = 5000;

struct Account {
  std::string name;
  uid_t uid = 0;
  gid_t gid = 0;
};

// Nothing: there is none, or it was not found in time.
std::optional<Account> account_of(const std::string& name);
std::optional<Account> account_of(uid_t uid);
std::string user_name(uid_t uid);  // its number, where it has none
std::optional<gid_t> gid_of(const std::string& group);
// All of his, his own one among them.
std::vector<gid_t> groups_of(const Account& account);

}  // namespace sluice::doctor
