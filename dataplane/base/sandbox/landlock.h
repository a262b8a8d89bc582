// Landlock: which files and TCP ports a thread and its children may come to. Only the kernel's interface, of
// which Debian's headers are older than its versions.
//
// Cold; restrict_this_thread only makes a system call, so a signal handler may.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "dataplane/base/error.h"
#include "dataplane/base/sandbox/sandbox.h"
#include "dataplane/base/unique_fd.h"

namespace sluice::sandbox {

// What the profile says, as a descriptor. kInternal: the kernel has Landlock and does not take it. Nothing of
// the versions that can do too little: before 2 no file could be moved to another directory.
Result<UniqueFd> make_ruleset(const Profile& profile, int version);

// 0, or an errno. It must have said that it wants no new privileges.
int restrict_this_thread(int ruleset);

}  // namespace sluice::sandbox
