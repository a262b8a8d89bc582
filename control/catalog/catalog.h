// What a transfer moves, apart from how it is moved: files have names, objects have bytes.
//
// A file is what an operator knows: a name, a size, times, and a place at each node. An object is what the
// data plane knows: a number and a length, cut into extents, with credit, digest and repair. Each object
// holds one file, in the order in which they were added. Small files of a tree travel together in packs: then
// the file is the pack, which has no name; those in it (control/tree/pack.h) are known to whoever fills and
// unpacks it alone.
//
// Pure. Files and objects are numbered from 0 within their transfer, at both nodes alike.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "control/catalog/entry.h"
#include "control/digests/named.h"
#include "control/selection/file_part.h"
#include "dataplane/base/file_time.h"
#include "dataplane/base/number.h"
#include "dataplane/base/range.h"

namespace sluice::catalog {

using FileId = Number<struct FileTag, uint32_t>;

inline constexpr uint32_t kFilesMax = 4096;  // of one transfer
inline constexpr uint64_t kFileBytesMax = 1ULL << 60;
inline constexpr size_t kHolesMax = 4096;           // of one file, and of one part of an offer
inline constexpr size_t kHolesOfAllMax = 1U << 16;  // of all files of a transfer
// Of a transfer with packs: objects that are open at a time, at most. Packs lie in memory meanwhile.
inline constexpr uint32_t kOpenWithPacksMax = 16;
inline constexpr uint64_t kPackHeadBytes = 24;  // magic, bytes of the index, where the bytes of files begin
inline constexpr uint64_t kPackBytesMax = 1ULL << 30;

// Which file a descriptor means, across restarts. An inode's number is given to another file once it is free:
// generation and time of birth tell them apart, on file systems that have these (otherwise 0).
struct FileIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
  uint64_t generation = 0;
  int64_t birth_ns = 0;  // since 1970
};

// As far as both are known.
bool same_file(const FileIdentity& one, const FileIdentity& other);

enum class FileState : uint8_t {
  kOpen,       // bytes are missing, or not all of them are durable
  kFinishing,  // complete and synced: it gets its final name, or has it
  kDone,       // durable under its final name
  kFailed,     // given up: nothing of it has a name, and nothing unfinished is to be left
};

enum class FileKind : uint8_t {
  kFile,
  kPack,      // many small files
  kLastPack,  // hard links and the modes and times of directories: unpacked when all else is done
};
inline constexpr uint8_t kFileKinds = 3;

// How far the list of a transfer's files had come with a file: data may move while a tree is still read.
enum class ListState : uint8_t {
  kWhole,    // it was whole before anything moved
  kGrowing,  // more may follow
  kEnded,    // it grew while data moved; this is the last
};
inline constexpr uint8_t kListStates = 3;

// What a pack has besides.
struct Pack {
  uint32_t members = 0;
  std::shared_ptr<const std::string> list;  // at the source: of what it is made (tree::to_bytes)
};

struct File {
  std::string name;   // as offered to the destination; in a tree its path, from the tree's own name on
  std::string shown;  // for people: the path at the source, the final path at the destination
  // Source: the path by which it is opened again. Destination: the final path, as bytes. Empty: there is no
  // file; the bytes are generated, or discarded.
  std::string path;
  std::string peer_path;  // where it stands at the other node, for people
  uint64_t size_bytes = 0;
  uint32_t mode = 0644;           // permission bits
  base::FileTimeNs mtime_ns = 0;  // since 1970
  int64_t ctime_ns = 0;           // of the source, when it was opened or last found unchanged; 0: not known
  FileIdentity identity;          // of the source; of the unfinished file at the destination
  uint64_t digest = 0;            // kFinishing, kDone: of the transfer's CRC kind
  FileState state = FileState::kOpen;
  bool overwrite = false;
  // Read again before it is believed. Destination: its disk failed once. Source: times may not tell of
  // changes.
  bool suspect = false;
  bool verify = false;  // destination: read again, too, because an operator asked for that
  FileKind kind = FileKind::kFile;
  ListState list = ListState::kWhole;
  Pack pack;
  Shortfall missing;  // of its names, at the destination
  // Runs of zeros that take no room on the disk, in order. Source: as they were when it was opened, at first
  // of any bytes, then of whole extents. Destination: whole extents that the source offered as such.
  std::vector<base::Range> holes;
  Keep keep;              // destination: what was agreed to be kept of it, or of what is in it
  Attributes attributes;  // of kFile
  // It is the object's bytes; all else that is said here is of the whole file.
  selection::FilePart part;
  std::optional<uint64_t> whole_digest;  // of the whole file, once it is finished
  digests::Digested digests;

  bool packed() const { return kind != FileKind::kFile; }
  bool failed() const { return state == FileState::kFailed; }
  // Of the file as it stands on a disk, and where the object's bytes begin in it.
  uint64_t bytes_on_disk() const { return selection::is_part(part) ? part.whole_bytes : size_bytes; }
  uint64_t base_bytes() const { return part.offset; }
  uint32_t names() const { return packed() ? pack.members : 1; }
  // None of its names arrives. `names`: those of a pack, as far as they are known.
  void note_failed(const std::vector<FailedName>& names, Failure failure);
  void name_failed(const std::vector<FailedName>& names);  // of a pack, unless they are known
};

struct Object {
  FileId first_file;
  uint32_t file_count = 0;
  uint64_t size_bytes = 0;
};

// What of these runs is whole extents of a file of `size_bytes`; the last extent ends with it.
std::vector<base::Range> whole_extents(const std::vector<base::Range>& runs, uint64_t size_bytes,
                                       uint64_t extent_bytes);

// Whole extents, each behind the one before it.
bool good_holes(const std::vector<base::Range>& holes, uint64_t size_bytes, uint64_t extent_bytes);

// Parts of `holes` lie in `others` too (`common`), and parts do not (`rest`). Both lists are in order.
struct CommonHoles {
  std::vector<base::Range> common;
  std::vector<base::Range> rest;
};
CommonHoles common_holes(const std::vector<base::Range>& holes, const std::vector<base::Range>& others);

class Catalog {
 public:
  // The file becomes an object of its own. Its `list` is that of the catalog from then on.
  FileId add(File file);

  size_t file_count() const { return files_.size(); }
  size_t object_count() const { return objects_.size(); }
  uint64_t bytes_total() const { return bytes_total_; }
  bool has_packs() const { return has_packs_; }
  bool packed(ObjectId object) const { return files_of(object).front().packed(); }
  // At a time, where a transfer without packs may have so many.
  uint32_t open_at_most(uint32_t objects) const {
    return has_packs_ || grew() ? std::min(objects, kOpenWithPacksMax) : objects;
  }
  uint64_t names() const { return names_; }  // files, and what is in packs
  uint32_t objects_failed() const {
    const auto failed = [](const File& file) { return file.failed(); };
    return static_cast<uint32_t>(std::count_if(files_.begin(), files_.end(), failed));
  }
  // Where there is more than one name, one that fails does not end the transfer.
  // What is kept of each of them.
  Keep keep() const { return files_.empty() ? Keep() : files_.begin()->keep; }
  bool may_fail_in_part() const { return names_ > 1 || grew(); }
  // The list of files: that of the last of them tells. What follows from its having grown holds for ever.
  ListState list() const { return files_.empty() ? ListState::kWhole : (files_.end() - 1)->list; }
  bool growing() const { return list() == ListState::kGrowing; }
  bool grew() const { return list() != ListState::kWhole; }
  void set_list(ListState state) {
    if (!files_.empty()) (files_.end() - 1)->list = state;
  }
  const Object& object(ObjectId object) const { return objects_[object]; }
  const File& file(FileId file) const { return files_[file]; }
  File& file(FileId file) { return files_[file]; }
  // The files whose bytes an object carries, in the order of their bytes.
  std::span<const File> files_of(ObjectId object) const;
  std::span<File> files_of(ObjectId object);
  // For people: the name of an object.
  const std::string& shown(ObjectId object) const { return files_[objects_[object].first_file].shown; }
  bool contains(ObjectId object) const { return objects_.contains(object); }
  const Indexed<FileId, File>& files() const { return files_; }

 private:
  Indexed<FileId, File> files_;
  Indexed<ObjectId, Object> objects_;
  uint64_t bytes_total_ = 0;
  uint64_t names_ = 0;
  bool has_packs_ = false;
};

}  // namespace sluice::catalog
