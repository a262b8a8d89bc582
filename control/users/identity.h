// Becoming a user of this host: who he is, whether he is a member of the group, and the change, which cannot
// be taken back.
//
// Cold. become() is for a process that was forked for it, and has one thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "dataplane/base/error.h"

namespace sluice::users {

struct Account {
  std::string name;
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;  // all of his
};

// Of a user who is a member of this group of the host. kConfiguration: there is no such user or group, or he
// is none of its members, or an account of the system, whose number is below `uid_min`, or root, as whom
// nothing is ever opened.
Result<Account> member(uid_t uid, const std::string& group, uid_t uid_min);
// His name, or his number where he has none.
std::string name_of(uid_t uid);

// His ids and groups, no capability, no new privileges, and nobody who traces. kDevice: the kernel did not do
// all of that; then this process must end.
Status become(const Account& account);

}  // namespace sluice::users
