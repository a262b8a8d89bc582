// Extended attributes of users and POSIX ACLs: read from files and directories of a source, given to those of
// a destination.
//
// Only `user.*` is touched: what else there is means something to the system, and is not a peer's to choose.
// An ACL is taken apart, and put together again from what was checked: users and groups in it are mapped as
// owners are (owners.h). What was not agreed to be kept stays as it is.
//
// Cold; blocking; one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>

#include "control/catalog/attributes.h"
#include "control/catalog/entry.h"
#include "control/exports/owners.h"

namespace sluice::exports {

// Of an open file or directory, added to what `into` has. kAttributesTooLarge; otherwise why it cannot be
// read.
catalog::Failure read_kept(int fd, bool is_directory, const catalog::Keep& keep, Accounts& accounts,
                           catalog::Attributes* into);

struct Refused {
  int reason = 0;    // an errno; 0: none
  std::string what;  // for people
};
// To an open file or directory of this process; who calls sets owner and mode afterwards. What is kept of
// other names, and this one has not, is taken from it.
Refused give_kept(int fd, bool is_directory, const catalog::Attributes& attributes, const catalog::Keep& keep,
                  Accounts& accounts);
// Was it refused because the disk is full or broken, and not because of what it is?
bool concerns_disk(int fd, int reason);

// As Linux has it in an extended attribute (linux/posix_acl_xattr.h). Nothing: it is none.
std::optional<catalog::Acl> acl_of_bytes(std::string_view bytes);
std::string bytes_of_acl(const catalog::Acl& acl);

}  // namespace sluice::exports
