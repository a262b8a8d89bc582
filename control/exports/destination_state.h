// What is known of a file on its way (DestinationFile). Cold; any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "control/exports/as_user.h"
#include "control/exports/exports.h"
#include "control/exports/given.h"
#include "control/exports/part_files.h"
#include "control/exports/writable.h"

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
  std::shared_ptr<Given> given;
  std::shared_ptr<WritableDirectories> writable;           // where the directory may be opened up
  mutable catalog::Failure why = catalog::Failure::kNone;  // of the last error

  ~State();

  // In bytes, whatever they are.
  std::string absolute() const {
    return (root_path == "/" ? "" : root_path) + "/" + (relative == "." ? "" : relative + "/") + name;
  }
  Result<bool> in_place() const { return leads_to(root_path, relative, directory.get()); }
  std::string place_now() const;
  Error elsewhere(ErrorCode code, const std::string& begin, const std::string& end) const;
  UserFile for_user() const;  // as the user's helper has to know it
  std::shared_ptr<const void> writable_for_now() const {
    return writable ? writable->if_needed(directory.get()) : nullptr;
  }
  Status open_directory(int root_fd, const std::string& shown);
  // part_destination.cc
  PartFiles part_files() const { return {directory.get(), name, spec.part.set, path}; }
  Status create_part();
  // naming.cc
  Status refuse(catalog::Failure failure, Error error) const;
  Status exists() const;
  Status check_name(const std::string& shown) const;
  Status check_final_name() const;
  Status rename_to_final();
  bool has_final_name() const;
  Status not_renamed(int reason);
  Status take_what_is_there();
  Status give_all(int file_fd) const;
  // leftovers.cc
  Error no_right_to_name() const;
  Status commit_for_user();
  Status unlink() const;
  Status remove() const;  // what is unfinished, so that no loss of power brings it back
};

}  // namespace sluice::exports
