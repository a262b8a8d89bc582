// All that lies beneath a directory of an export, in an order in which it can be made again elsewhere.
//
// Each directory comes after what is in it, and the names of a directory come together, sorted. Links are
// told and not followed. What cannot be read is told as well, with the reason: the rest goes on.
//
// Cold; blocking; any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "control/catalog/entry.h"
#include "control/exports/nested.h"
#include "control/selection/choice.h"
#include "dataplane/base/error.h"
#include "dataplane/base/unique_fd.h"

namespace sluice::exports {

struct SourceTree {
  UniqueFd fd;                 // of the directory; can only be looked up in
  std::string path;            // absolute, for people
  std::string name;            // last component; empty for "DIR/", "DIR/." and an export by its name alone
  std::vector<Nested> nested;  // which of them may be read
};

// Why something that is to be read, or looked at, cannot be; from errno.
catalog::Failure read_failure(int reason);

// Paths are relative to the tree. What the rules of the choice leave out is as if it were not there; they
// judge paths as they arrive, beneath the tree's name. With a list of names nothing else is looked at, each
// that is not there is told; the tree has no name then. An error of `take` ends it, and is returned.
// kSourceUnreadable: the directory itself cannot be read.
using TakeEntry = std::function<Status(catalog::Entry entry)>;
Status walk_tree(const SourceTree& tree, const selection::Choice& choice, const TakeEntry& take);

}  // namespace sluice::exports
