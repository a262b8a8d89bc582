// The filter of system calls, by libseccomp, and the count of what it does not allow.
//
// Cold, the main thread; the handler of SIGSYS runs on whichever thread made a call that is not allowed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dataplane/base/error.h"
#include "dataplane/base/sandbox/sandbox.h"

namespace sluice::sandbox {

// For every thread. `files_bounded`: Landlock holds. kInternal: it cannot be made of this profile.
// kConfiguration: a filter above this process forbids it. False: this kernel takes no filter.
Result<bool> filter_calls(const Profile& profile, bool files_bounded);

}  // namespace sluice::sandbox
