// Files beneath the configured export roots: the only way by which Sluice reaches a name.
//
// Every lookup is openat2 with RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS from
// the root's descriptor, so that neither "..", nor a symbolic link, nor a race leads outside. A path
// is either absolute, beneath an export's root, or "EXPORT/relative". Cold; blocking; any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/catalog/catalog.h"
#include "control/exports/tree_walk.h"
#include "control/exports/unpack.h"
#include "control/exports/writable.h"
#include "control/names/words.h"
#include "dataplane/base/config/config.h"
#include "dataplane/base/error.h"
#include "dataplane/base/file_time.h"
#include "dataplane/base/unique_fd.h"
#include "dataplane/core/wire.h"

namespace sluice::exports {

struct SourceFile {
  UniqueFd fd;  // O_RDONLY, O_DIRECT where the export wants it and the file system takes it
  bool direct = false;
  std::string path;  // absolute, for people
  std::string name;  // last component
  uint64_t size = 0;
  uint32_t mode = 0;  // permission bits
  uint32_t uid = 0;
  uint32_t gid = 0;
  base::FileTimeNs mtime_ns = 0;
  int64_t ctime_ns = 0;
  bool may_be_changing = false;  // its times may not tell (file_state.h)
  catalog::FileIdentity identity;
};

struct DestinationSpec {
  std::string path;           // what the operator wrote
  bool is_directory = false;  // put the file into it, under `name`
  std::string name;           // name of the source file
  uint64_t size = 0;
  uint32_t mode = 0644;
  base::FileTimeNs mtime_ns = 0;
  bool overwrite = false;
  bool one_of_many = false;        // of a session of several names: what is the same there already is as good
  bool beneath_tree = false;       // in a directory of what comes, which may be opened up (writable.h)
  uint32_t alignment = 4096;       // the preallocated size is rounded up to this
  std::vector<base::Range> holes;  // in order: what of it takes no room
  catalog::Keep keep;
  catalog::Attributes attributes;
  // Of one file that several sessions write (part_files.h); then `size` is that of the whole.
  selection::FilePart part;
  bool verify = false;  // the session that makes a file of the parts reads it back first
  wire::CrcKind crc_kind = wire::CrcKind::kCrc64Ecma;  // of the digests of its parts
};

// A file on its way: data goes to a temporary name beside the final one. Unless `commit` succeeded or `keep`
// was called, the destructor removes the temporary file.
class DestinationFile {
 public:
  DestinationFile(DestinationFile&&) noexcept;
  DestinationFile& operator=(DestinationFile&&) noexcept;
  ~DestinationFile();

  int directory_fd() const;  // of that in which it is
  int fd() const;            // O_RDWR (a mapping needs that), O_DIRECT where wanted and possible
  bool direct() const;
  const std::string& final_path() const;  // absolute, for people
  std::string name_path() const;          // absolute, the bytes of the name: for reopen_destination
  bool has_name() const;                  // its final one
  catalog::FileIdentity identity() const;
  // Of the last error: what a peer is told of it; kNone: what its code says.
  catalog::Failure why() const;
  Status drop();     // removes the unfinished file, so that no loss of power brings it back
  Status give_up();  // the same, not yet synced; nothing else may be done with it then
  void keep();       // the file stays when this object goes: its session goes on later
  // fdatasync, and once the directory, so that the file is found after a loss of power. An error means:
  // nothing since the last good one is durable.
  Status sync();
  // Truncates to size, sets owner and group if they are kept, then mode and mtime, fsyncs.
  Status finish();
  // After finish: has it the time that it was to have, as precisely as its file system keeps any?
  bool has_its_time() const;
  // After finish: renames (RENAME_NOREPLACE unless overwriting), fsyncs the directory. After an error it may
  // be called again: what was done then is not done twice. kStorage, before anything has a name: the path
  // leads elsewhere than when the file was created. kOutsideExports: so it does since the rename; the file
  // stays.
  Status commit();
  // Of a part, in place of commit(): notes that the range is durable, or gives the file its name, or removes
  // it. `digest`: of the range. Of a file that was finished, the digest of all of it.
  Result<std::optional<uint64_t>> commit_part(uint64_t digest);
  // It was removed or replaced, or the path leads elsewhere since it was made. False of a user's file, of
  // which only its own process can tell.
  bool away() const;

 private:
  friend class Exports;
  struct State;
  explicit DestinationFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// A range that is durable already.
struct PartFound {
  std::string shown;  // the final path, for people
  std::string path;   // the same, in bytes
  catalog::FileIdentity identity;
  uint64_t digest = 0;
};

// While it lives, nobody takes this unfinished file of a transfer that let go of it for a leftover.
using Reservation = std::shared_ptr<const void>;
class Reserved;
class UserFiles;
class UserTrees;
class Listing;
struct Pulse;

// Whose wish it is. An operator of this node sees what is beneath any of its exports, and may remove where
// peers may write.
enum class Asker : uint8_t { kPeer, kOperator };

// What the sessions of a peer, or of a user, may take beneath an export.
struct QuotaOf {
  std::string export_name;
  config::Quota quota;
};

class Exports {
 public:
  // Opens the roots. An export whose root is missing is a configuration error that names it.
  static Result<Exports> open(const std::vector<config::Export>& exports);
  // Those whose roots this process may reach. Of one that it may not, nothing can be opened; which, and why,
  // is told by whoever tries.
  static Exports open_reachable(const std::vector<config::Export>& exports);
  // Directories that are opened up are noted there (writable.h), and those of before get back their modes.
  // Returns how many. Before anything is copied from this.
  size_t note_opened_in(const std::filesystem::path& file);
  // The same as this peer may use it, in sessions of either side's asking: what is not open to it stands
  // there without any right, so that nobody comes to an inner export by way of an outer one. Cheap; shares
  // the descriptors and what is reserved.
  Exports for_peer(std::string_view peer) const;
  // The same as an operator of this node may use it, who asked for what comes: owners, groups and ACLs
  // are his wish.
  Exports for_operator() const;
  // The same for a user of this host, as whom all is opened (as_user.h). Trees and packs are read and made by
  // whoever has trees_of_user(): functions that walk, unpack or list refuse here.
  Exports for_user(std::shared_ptr<UserFiles> user) const;
  // kUsage: why this is refused then.
  static Error not_as_user(std::string_view path, const char* what);
  static Error part_not_as_user(std::string_view path);
  // The same for files anywhere on this host that one of its own commands named. Somebody who may opens them
  // (for_user). Exports do not limit these: they limit peers.
  Exports anywhere() const;
  bool of_user() const { return user_ != nullptr; }
  std::string user_key() const;  // of_user() only: UserFiles::key()
  // Nothing: there is no user, or files are all that is opened for this one.
  UserTrees* trees_of_user() const;
  const std::string& peer() const { return peer_; }  // of for_peer()

  // kSourceUnreadable (missing, no permission, a directory, a device), kOutsideExports; as of every path
  // here, kStorage when another directory than at the start stands under the export's path. What is not
  // complete cannot be read so: it counts as missing. `why`: what a peer is told of it; left alone: what its
  // code says.
  Result<SourceFile> open_source(std::string_view path, catalog::Failure* why = nullptr) const;
  // Nothing when it is no directory. Its name is empty where the path ends in a slash.
  Result<std::optional<SourceTree>> open_tree(std::string_view path) const;
  // What there is of a file that create_destination made and that is not complete.
  Result<SourceFile> open_unfinished(const std::string& name_path) const;
  // Size and mtime still as they were? Otherwise kIntegrity, "source changed". The ctime of now.
  static Result<int64_t> check_unchanged(const SourceFile& file);
  // kOutsideExports, kDestinationExists, kNoSpace (checked before, and by fallocate), kStorage. Two
  // writers for one destination: the second gets kDestinationExists naming the first's temporary.
  // `why`: what a peer is told of it; left alone: what its code says.
  Result<DestinationFile> create_destination(const DestinationSpec& spec,
                                             catalog::Failure* why = nullptr) const;
  // Of a range: its digest, if it was noted that it is durable, of a source as spec has it. `spec` is then
  // that of a file to be created; nothing else is changed.
  Result<std::optional<PartFound>> find_part(const DestinationSpec& spec) const;
  // The unfinished file of an earlier life of this daemon; spec.path is its name_path(). `fd`: its
  // descriptor, when somebody still had it, and with it the lock. Nothing when it is gone or is another file.
  Result<std::optional<DestinationFile>> reopen_destination(const DestinationSpec& spec,
                                                            const catalog::FileIdentity& identity,
                                                            UniqueFd fd) const;
  // The directory into which a tree comes. kStorage when there is none; otherwise as for a file.
  // kOutsideExports: `keep` is not the peer's to choose there; kConfiguration: this process may not give
  // files away.
  Result<DestinationTree> open_destination_tree(std::string_view path, const catalog::Keep& keep = {}) const;
  // Its path alone. Also for a user.
  Result<std::string> destination_path(std::string_view path, const catalog::Keep& keep) const;
  // Makes what is missing of the directory into which something comes, as mkdir -p does, and durably: all of
  // the path, or, of a file's, all but its name. Needs the right to write and no other.
  Status make_missing(std::string_view destination, bool is_directory, const catalog::Keep& keep) const;
  // `relative` beneath it, made where it is missing; its path.
  Result<std::string> make_directories_for(std::string_view destination, const std::string& relative,
                                           catalog::Failure* why = nullptr) const;
  // Of the export in which the path lies, and of those within it that are open: a tree may come into them,
  // too. Nothing where the path leads into none.
  std::vector<QuotaOf> quotas(std::string_view path) const;
  // The same for this user of the host.
  std::vector<QuotaOf> quotas_of_user(std::string_view path, std::string_view user) const;
  // A former life of this daemon gave some of the session's names: then more is taken for one of them.
  void note_interrupted() const { given_->interrupted(); }
  void others_give_too() const { given_->others_give_too(); }  // given.h
  // kOutsideExports: it lies in none that is open. Without a look at its file system.
  Status check_within(std::string_view path) const;
  // The number of the file system on which the directory of this path lies. Nothing: it cannot be looked at.
  std::optional<uint64_t> device_of(std::string_view path) const;
  // The export in which the path lies, without a look at its file system; empty: in none.
  std::string export_of(std::string_view path) const;
  // Of sessions that have ended, also where nothing may be written any more. The directory in which it was,
  // to be synced; none: that is gone as well, or of a file of somebody else nothing was removed.
  Result<UniqueFd> remove_unfinished(const std::string& name_path,
                                     const catalog::FileIdentity& identity) const;
  Result<UniqueFd> open_to_remove(std::string_view directory) const;
  // As long as what is returned lives, names may be removed there although its mode forbids it (writable.h).
  std::shared_ptr<const void> open_up_for_now(int directory_fd) const;
  Reservation reserve(const catalog::FileIdentity& unfinished, const std::string& name_path) const;
  // Is this the file under its final name? Then the directory is synced, too.
  Result<bool> is_committed(const std::string& name_path, const catalog::FileIdentity& identity) const;
  // Of a part: is it noted, has the file its name, or is it removed?
  Result<bool> is_part_committed(const DestinationSpec& spec, const catalog::FileIdentity& identity) const;

  // Of the file systems beneath exports that may be written: which these are, and what one tells, if it does.
  std::vector<std::string> writable() const;
  std::optional<names::Space> space_of(const std::string& export_name) const;

  // ---- names, for peers and operators (listing.cc, manage.cc) ----
  // kSourceUnreadable, kOutsideExports. The pulse outlives the Listing, and this object as well.
  Result<std::unique_ptr<Listing>> list(const names::List& asked, Pulse& pulse,
                                        Asker asker = Asker::kPeer) const;
  // These are durable when they return without an error, and need the right `manage`. kDestinationExists also
  // where a transfer writes to what is named, or beneath it.
  Result<names::Done> make_directory(const names::MakeDirectory& asked) const;
  Result<names::Done> move(const names::Move& asked) const;
  // What could not be removed is in its `problems`, all else is gone. kCancelled: it was stopped.
  Result<names::Done> remove(const names::Remove& asked, Pulse& pulse, Asker asker = Asker::kPeer) const;
  // Any of them. What peers may write an operator may make and move, too.
  Result<names::Done> change(const names::Request& asked, Pulse& pulse, Asker asker) const;

 private:
  friend class Listing;
  struct Root {
    config::Export config;  // of an export that is not open to the peer: without any right
    std::shared_ptr<const UniqueFd> fd;
    bool open = true;
    int unreachable = 0;  // errno
    // Of `fd`. Asked for once: what is done in one export waits for no file system of another.
    dev_t device = 0;
    ino_t inode = 0;
  };
  static Root root_at(const config::Export& config);
  struct Location {  // a path beneath a root; `relative` is "." for the root itself
    const Root* root = nullptr;
    std::string relative;
    std::string absolute;      // for people
    std::string path() const;  // absolute, in bytes
  };
  Result<Location> locate(std::string_view path) const;
  Result<Location> locate_readable(std::string_view path) const;
  Result<Location> locate_writable(std::string_view path) const;
  static bool permits(const config::Export& config, const catalog::Keep& keep);
  Status check_keep(const Location& location, const catalog::Keep& keep) const;
  Result<Location> locate_listable(std::string_view path, Asker asker, bool digests) const;
  Result<Location> locate_managed(std::string_view path) const;
  void list_roots(Listing& listing) const;
  // The export whose root this is, by its path or by the directory itself.
  const Root* root_of(const std::string& absolute) const;
  const Root* root_of(dev_t device, ino_t inode) const;
  // kOutsideExports, kDestinationExists: why what has this name must stay where it is.
  Status check_free(const Location& location, bool with_all_beneath) const;
  static Status check_in_place(const Root& root);
  static Result<SourceFile> open_regular(const Location& location, catalog::Failure* why = nullptr);
  // As the export of this place wants it.
  bool make_direct_at(const std::string& name_path, int fd) const;
  static Result<SourceFile> as_source(const Location& location, UniqueFd fd, catalog::Failure* why);
  Status create_in(DestinationFile::State& state) const;
  Result<std::unique_ptr<DestinationFile::State>> state_for(const DestinationSpec& spec,
                                                            catalog::Failure* why) const;
  // as_user.cc
  Result<SourceFile> open_for_user(const Location& location, bool unfinished,
                                   catalog::Failure* why = nullptr) const;
  Result<DestinationFile> create_for_user(const Location& location, const DestinationSpec& spec,
                                          catalog::Failure* why) const;
  Result<std::optional<DestinationFile>> reopen_for_user(const DestinationSpec& spec,
                                                         const catalog::FileIdentity& identity,
                                                         UniqueFd fd) const;
  Result<DestinationFile> take_for_user(const DestinationSpec& spec, UniqueFd fd, UniqueFd directory) const;
  struct Named {         // a directory beneath a root that may be written, and a name in it
    UniqueFd directory;  // open; without it there is none
    std::string name;
    std::string root_path;
    std::string relative;
  };
  struct Within {  // an export within a directory, and where
    const Root* root = nullptr;
    std::string path;
  };
  std::vector<Within> within(const Location& location) const;
  std::vector<QuotaOf> quotas_by(std::string_view path,
                                 const std::function<config::Quota(const config::Export&)>& quota) const;
  // The same, and whether they may be read, or written with what is to be kept.
  std::vector<Nested> nested(const Location& location, bool config::Export::*right,
                             const catalog::Keep& keep = {}) const;
  Result<Named> open_named(const std::string& name_path) const;
  std::vector<Root> roots_;
  bool of_operator_ = false;
  std::shared_ptr<Reserved> reserved_;
  std::shared_ptr<WritableDirectories> writable_ = std::make_shared<WritableDirectories>();
  std::shared_ptr<Given> given_ = std::make_shared<Given>();  // by the session that for_peer() was called for
  std::string peer_;                                          // of for_peer()
  std::shared_ptr<UserFiles> user_;
};

}  // namespace sluice::exports
