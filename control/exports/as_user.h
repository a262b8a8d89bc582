// Files and trees that are read, made and named as a user of this host, not as this daemon: whoever
// implements this (control/users) has somebody do it who is that user and has no other right.
//
// What comes back is a descriptor. It is looked at here before it is believed (as_user.cc): nothing more than
// what the user could have opened himself. Cold; blocking; any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/exports/exports.h"
#include "control/exports/pulse.h"
#include "control/exports/unpack.h"
#include "control/names/words.h"

namespace sluice::exports {

// An unfinished file of a session of a user with `peer`.
struct UserFile {
  std::string peer;
  DestinationSpec spec;  // its path is the name_path, but for one that is to be made
  catalog::FileIdentity identity;
  int fd = -1;  // that is open already, if it is
};

// Directories and packs of a user, with a peer. That user's process walks, reads, unpacks and names; here
// only what comes of it is seen. Errors as of what does the same without a user (control/gather), and of
// UserFiles::there().
class UserTrees {
 public:
  struct Wish {  // of what is to be sent
    std::vector<std::string> paths;
    selection::Selection selection;
    std::vector<catalog::File> known;
    std::shared_ptr<const digests::Expected> expected;
    bool by_parts = false;  // take() is called with the first ones; otherwise they come at once
  };
  // An error of either ends it.
  struct Take {
    std::function<Status()> go_on;  // asked again and again while nothing comes
    std::function<Status(std::vector<catalog::File>)> part;
  };
  struct Pack {
    catalog::File file;
    std::string staging;         // name of the hidden directory
    digests::Expected expected;  // of what is in it
    int memory_fd = -1;          // from which it is read; whoever has the pack keeps its own copy
  };

  virtual ~UserTrees() = default;
  // Calls take() with each part but the last, which it returns.
  virtual Result<std::vector<catalog::File>> list(const std::string& peer, const Wish& wish,
                                                  const Take& take) = 0;
  virtual Status preview(const std::string& peer, const Wish& wish, const TakeEntry& take) = 0;
  // Memory, sealed as a pack's.
  virtual Result<UniqueFd> fill_pack(const std::string& peer, const catalog::File& pack) = 0;
  virtual std::vector<catalog::FailedName> names_of_changed(const std::string& peer,
                                                            const catalog::File& pack) = 0;
  virtual Result<std::string> open_destination(const std::string& peer, const std::string& path,
                                               const catalog::Keep& keep) = 0;
  virtual Status make_missing(const std::string& peer, const std::string& destination, bool is_directory,
                              const catalog::Keep& keep) = 0;
  virtual Result<std::string> make_directories(const std::string& peer, const std::string& destination,
                                               const std::string& relative, catalog::Failure* why) = 0;
  // When it returns all names are staged.
  virtual Result<std::shared_ptr<Unpacking>> stage(const std::string& peer, Pack pack) = 0;
  virtual Status remove_staging(const std::string& peer, const catalog::File& pack,
                                const std::string& staging) = 0;
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
  // `why`: as of Exports::create_destination.
  virtual Result<Opened> create(const UserFile& file, catalog::Failure* why) = 0;
  virtual Result<std::optional<Opened>> reopen(const UserFile& file) = 0;
  virtual Status finish(const UserFile& file) = 0;
  virtual Committed commit(const UserFile& file) = 0;
  virtual Status drop(const UserFile& file) = 0;
  virtual Result<bool> is_committed(const UserFile& file) = 0;
  // Nothing: files are all that is opened for this user.
  virtual UserTrees* trees() { return nullptr; }
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
  // As an operator changes them who has no more rights than this user; for a peer: only where it may as well.
  // Errors as of Exports; kCancelled: the pulse was told to stop.
  virtual Result<names::Done> change(const names::Request& asked, const std::string& for_peer,
                                     Pulse& pulse) = 0;
};

}  // namespace sluice::exports
