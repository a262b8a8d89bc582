// What a transfer moves, apart from how it is moved: files have names, objects have bytes.
//
// A file is what an operator knows: a name, a size, times, and a place at each node. An object is what the
// data plane knows: a number and a length, cut into extents, with credit, digest and repair. Here each object
// holds exactly one file, in the order in which they were added; only this class knows that. An object that
// holds many small files needs another way of adding, and nobody else has to learn of it.
//
// Pure. Files and objects are numbered from 0 within their transfer, at both nodes alike.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "dataplane/base/number.h"

namespace sluice::catalog {

using FileId = Number<struct FileTag, uint32_t>;

inline constexpr uint32_t kFilesMax = 4096;  // of one transfer
inline constexpr uint64_t kFileBytesMax = 1ULL << 60;

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
};

struct File {
  std::string name;   // as offered to the destination
  std::string shown;  // for people: the path at the source, the final path at the destination
  // Source: the path by which it is opened again. Destination: the final path, as bytes. Empty: there is no
  // file; the bytes are generated, or discarded.
  std::string path;
  std::string peer_path;  // where it stands at the other node, for people
  uint64_t size_bytes = 0;
  uint32_t mode = 0644;   // permission bits
  int64_t mtime_ns = 0;   // since 1970
  int64_t ctime_ns = 0;   // of the source, when it was opened or last found unchanged; 0: not known
  FileIdentity identity;  // of the source; of the unfinished file at the destination
  uint64_t digest = 0;    // kFinishing, kDone: of the transfer's CRC kind
  FileState state = FileState::kOpen;
  bool overwrite = false;
  // Read again before it is believed. Destination: its disk failed once. Source: times may not tell of
  // changes.
  bool suspect = false;
  bool verify = false;  // destination: read again, too, because an operator asked for that
};

struct Object {
  FileId first_file;
  uint32_t file_count = 0;
  uint64_t size_bytes = 0;
};

class Catalog {
 public:
  // The file becomes an object of its own.
  FileId add(File file);

  size_t file_count() const { return files_.size(); }
  size_t object_count() const { return objects_.size(); }
  uint64_t bytes_total() const { return bytes_total_; }
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
};

}  // namespace sluice::catalog
