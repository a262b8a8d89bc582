// A directory beneath a writable export, into which a tree comes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "control/exports/given.h"
#include "control/exports/nested.h"
#include "control/exports/writable.h"
#include "dataplane/base/unique_fd.h"

namespace sluice::exports {

struct DestinationTree {
  UniqueFd fd;
  std::string path;                                          // absolute, the bytes of it
  std::string root_path;                                     // of the export
  std::string relative;                                      // beneath it
  std::vector<Nested> nested;                                // which of them may be written
  bool keeps_own = false;                                    // mode and time of itself, whatever a peer wants
  std::shared_ptr<Given> given = std::make_shared<Given>();  // by the session until now
  std::shared_ptr<WritableDirectories> writable = std::make_shared<WritableDirectories>();

  std::string absolute(const std::string& name) const { return (path == "/" ? "" : path) + "/" + name; }
};

}  // namespace sluice::exports
