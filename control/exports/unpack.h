// The names of a pack at the destination: made beneath a hidden directory, made durable, then moved to where
// they belong.
//
// stage() writes every file and link of the pack there (staging.h), and one syncfs makes all of them durable.
// commit() gives them their names, in directories that are made where they are missing, and a second syncfs
// makes these durable: two waits for the disk for a thousand files. Both may be repeated after any crash: a
// name that stands there already with the same bytes is as good as one that was just given.
//
// A name that cannot be given is told, with the reason, and does not stop the others; a disk that is full or
// broken does. Every look-up is beneath the directory's descriptor and follows no link.
//
// Where the file system answers slowly, several threads make the names of a pack (side_by_side.h).
//
// Cold; blocking; one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "control/catalog/asked_names.h"
#include "control/catalog/catalog.h"
#include "control/digests/named.h"
#include "control/exports/destination_tree.h"
#include "control/exports/owners.h"
#include "control/exports/parent.h"
#include "control/exports/side_by_side.h"
#include "control/exports/staging.h"
#include "control/tree/pack.h"
#include "dataplane/base/error.h"
#include "dataplane/base/unique_fd.h"

namespace sluice::exports {

// A pack whose names are staged, by this process or by one of a user (as_user.h).
class Unpacking {
 public:
  virtual ~Unpacking() = default;
  // After an error it may be called again. kStorage: the tree's path leads elsewhere now.
  virtual Status commit() = 0;
  // After commit(), as the next.
  virtual const catalog::Shortfall& missing() const = 0;
  // Of the names that were given. Nothing, if no digests were asked for.
  virtual std::vector<digests::Named> digests() const = 0;
};

// Nothing but what was asked for, and agreed upon, is in this index: kIncompatible, with what else is.
// `asked`: which names may come, where this node asked for them; nullptr: any.
Status check_wanted(const tree::Index& index, const catalog::AskedNames* asked, const catalog::Keep& keep,
                    uint64_t names_max);

class Unpacker final : public Unpacking {
 public:
  struct Options {
    bool overwrite = false;
    bool verify = false;  // each file is read back from the disk before it gets its name
    catalog::Keep keep;
    uint64_t names_max = UINT64_MAX;                         // that were offered, and judged by
    digests::Mask digests = 0;                               // are computed of each file
    std::shared_ptr<const digests::Expected> expected = {};  // what a list of this node wants of names
    mode_t umask = 0;  // bits of modes that no name gets, unless its ACL says more
    SideBySide threads = {};
  };

  // `staging`: the name of the hidden directory, the same for this pack after a restart.
  Unpacker(DestinationTree tree, const std::string& staging, Options options);
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;

  // kIncompatible: it is no pack, or has names that were not asked for, or more than offered. kNoSpace,
  // kStorage. `pack` is as long as its object.
  Status stage(std::span<const uint8_t> pack, const catalog::AskedNames* asked = nullptr);
  Status commit() override;  // after stage()
  const catalog::Shortfall& missing() const override { return missing_; }
  std::vector<digests::Named> digests() const override;

 private:
  using Entry = catalog::Entry;
  using Failure = catalog::Failure;

  // Others are made when they get their names.
  static bool is_made(const Entry& entry) {
    return entry.kind == catalog::EntryKind::kFile || entry.kind == catalog::EntryKind::kSymlink;
  }
  int make_staging();  // 0 or an errno
  Status stage_names(std::span<const uint8_t> pack);
  Failure refusal(const Entry& entry) const;
  Result<Failure> told(const std::string& path, int reason) const;
  // By one thread of several; `accounts` is its own.
  Result<Failure> stage_name(size_t number, std::span<const uint8_t> bytes, Accounts& accounts);
  Result<Failure> stage_link(size_t number, Accounts& accounts);
  Result<Failure> digest(size_t number, std::span<const uint8_t> bytes);
  Result<Failure> stage_file(size_t number, std::span<const uint8_t> bytes, Accounts& accounts);
  Status read_back(size_t number) const;
  Status give_names(const std::function<bool(size_t)>& which);  // by their numbers
  void settle(size_t number, Failure failure);
  size_t end_of_run(size_t first);
  // By one thread of several, as stage_name(): names of a run.
  Result<Failure> give_name(size_t number, Accounts& accounts);
  Result<Failure> link_to_target(const Entry& entry, const std::string& staged);
  Result<Failure> set_attributes(size_t number, Accounts& accounts);
  void note_other_times();
  Result<Failure> place(const Entry& entry, const std::string& staged, Accounts& accounts);
  Failure same_as(const Entry& entry, int parent_fd, const std::string& name, const std::string& staged,
                  Accounts& accounts);
  Status read_back();
  Result<Failure> give_attributes(int fd, const Entry& entry,
                                  Accounts& accounts) const;  // but mode and times
  mode_t mode_of(const Entry& entry) const;

  const DestinationTree tree_;
  const Options options_;
  std::shared_ptr<const void> top_open_;  // while its own mode forbids to stage anything in it
  Staging staging_;
  std::vector<Accounts> accounts_;  // of each thread
  tree::Index index_;
  std::vector<bool> settled_;        // has its name, or failed
  std::vector<uint8_t> other_time_;  // its file system cannot hold its own
  std::vector<bool> failed_;
  std::vector<digests::Values> digests_;  // of each; empty: none are computed
  Parent parent_;
  catalog::Shortfall missing_;
};

}  // namespace sluice::exports
