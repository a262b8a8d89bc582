// What is known of a file on its way (DestinationFile). Cold; any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "control/exports/as_user.h"
#include "control/exports/exports.h"

namespace sluice::exports {

struct DestinationFile::State {
  UniqueFd directory;
  std::string root_path;  // of the export
  std::string relative;   // of the directory, beneath it
  UniqueFd fd;
  std::string temporary;
  std::string name;
  std::string path;  // absolute, with the final name
  DestinationSpec spec;
  std::string name_path;  // absolute, with the bytes of the name
  bool direct = false;
  bool committed = false;
  bool keep = false;
  bool directory_synced = false;
  Reservation under_way;  // the place is taken
  // Of a user: all that is done to names and attributes, this does.
  std::shared_ptr<UserFiles> user;
  std::string peer;

  ~State();

  // In bytes, whatever they are.
  std::string absolute() const {
    return (root_path == "/" ? "" : root_path) + "/" + (relative == "." ? "" : relative + "/") + name;
  }
  Result<bool> in_place() const { return leads_to(root_path, relative, directory.get()); }
  std::string place_now() const;
  Error elsewhere(ErrorCode code, const std::string& begin, const std::string& end) const;
  UserFile for_user() const;  // as the user's helper has to know it
  Status rename_to_final() const;
  Status commit_for_user();
  Status remove() const;  // what is unfinished, so that no loss of power brings it back
};

}  // namespace sluice::exports
