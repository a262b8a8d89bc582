// Who people of this host are, by name and by group, whatever their numbers.
//
// Cold: the system's lists may be asked over a network. Any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>

#include "dataplane/base/error.h"

namespace sluice::users {

// kConfiguration: this host has no user of that name.
Result<uid_t> uid_of(const std::string& name);
// False, too, where there is no such user or group.
bool is_member(uid_t uid, const std::string& group);

}  // namespace sluice::users
