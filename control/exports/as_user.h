// Files that are opened and named as a user of this host, not as this daemon: whoever implements this
// (control/users) has somebody do it who is that user and has no other right.
//
// What comes back is a descriptor. It is looked at here before it is believed (as_user.cc): nothing more than
// what the user could have opened himself. Cold; blocking; any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "control/exports/exports.h"
#include "control/exports/pulse.h"
#include "control/names/words.h"

namespace sluice::exports {

// An unfinished file of a session of a user with `peer`.
struct UserFile {
  std::string peer;
  DestinationSpec spec;  // its path is the name_path, but for one that is to be made
  catalog::FileIdentity identity;
  int fd = -1;  // that is open already, if it is
};

class UserFiles {
 public:
  struct Opened {
    UniqueFd fd;  // nothing: the one that was open
    UniqueFd directory;
    std::string name_path;  // absolute, with the bytes of the name
  };
  struct Committed {
    Status status;
    bool named = false;  // it has its final name, whatever the status is
  };

  virtual ~UserFiles() = default;
  virtual uint32_t uid() const = 0;
  // By which its calls are kept apart from others, which it may hold up; for people.
  virtual std::string key() const = 0;
  // Is there somebody who does it, and may this user? kDaemonNotRunning, kConfiguration: why not.
  virtual Status there() = 0;
  // Errors as of the functions of Exports with these names, and of there().
  virtual Result<UniqueFd> open_source(const std::string& peer, const std::string& path, bool unfinished) = 0;
  virtual Result<Opened> create(const UserFile& file) = 0;
  virtual Result<std::optional<Opened>> reopen(const UserFile& file) = 0;
  virtual Status finish(const UserFile& file) = 0;
  virtual Committed commit(const UserFile& file) = 0;
  virtual Status drop(const UserFile& file) = 0;
  virtual Result<bool> is_committed(const UserFile& file) = 0;
};

// Names of this host as one of its users sees and changes them, where exports are.
class UserNames {
 public:
  class List {
   public:
    virtual ~List() = default;
    virtual Result<names::Page> next() = 0;  // without entries: it is complete
  };

  virtual ~UserNames() = default;
  // For a peer: only where it may look as well. Errors as of Exports::list, and of UserFiles::there();
  // kCancelled: it was abandoned.
  virtual Result<std::unique_ptr<List>> list(const names::List& asked, const std::string& for_peer,
                                             Abandoned abandoned) = 0;
  // As an operator changes them who has no more rights than this user. Errors as of Exports; kCancelled: the
  // pulse was told to stop.
  virtual Result<names::Done> change(const names::Request& asked, Pulse& pulse) = 0;
};

}  // namespace sluice::exports
