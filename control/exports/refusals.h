// Why a destination's file system refuses a name: what errno alone does not tell. Cold; blocking; any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "control/catalog/entry.h"
#include "dataplane/base/error.h"

namespace sluice::exports {

// `relative`: what was to be made or changed, beneath the open directory; `reason`: the errno of that.
catalog::Failure why_not(int directory_fd, const std::string& relative, int reason);
// The same for people: kStorage, kOutsideExports, kNoSpace. `path`: what they know it as.
Error refusal_of(int directory_fd, const std::string& relative, const std::string& path, int reason);

// What concerns the whole disk, and no name: kNoSpace, kStorage. `fd`: of anything in its file system, which
// then says what it ran out of; -1: not known.
Error disk_error(const std::string& path, int reason, int fd = -1);

// Another name of the session, or one that was there before, is the same to the file system.
Error other_letters(const std::string& path);

}  // namespace sluice::exports
