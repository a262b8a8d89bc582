// SPDX-License-Identifier: Apache-2.0
#include "control/catalog/catalog.h"

namespace sluice::catalog {

namespace {

// File systems without a block device (NFS, btrfs, FUSE) get another number each time they are mounted.
bool tells_of_mount(uint64_t device) {
  constexpr uint64_t kMajorBits = 0xFFFF'F000'000F'FF00;  // of a dev_t
  return (device & kMajorBits) == 0;
}

}  // namespace

bool same_file(const FileIdentity& one, const FileIdentity& other) {
  const auto may_be = [](auto a, auto b) { return a == b || a == 0 || b == 0; };
  const bool devices_may_be =
      one.device == other.device || (tells_of_mount(one.device) && tells_of_mount(other.device));
  return devices_may_be && one.inode == other.inode && may_be(one.generation, other.generation) &&
         may_be(one.birth_ns, other.birth_ns);
}

void File::note_failed(const std::vector<FailedName>& names_known, Failure failure) {
  missing = {.failed = names(), .left_out = 0, .names = {}};
  if (packed()) {
    name_failed(names_known);
  } else {
    missing.names = {{.path = name, .failure = failure}};
  }
}

void File::name_failed(const std::vector<FailedName>& names_known) {
  if (!missing.names.empty() || !packed()) return;
  missing.names = names_known;
  if (missing.names.size() > kFailuresKept) missing.names.resize(kFailuresKept);
  if (missing.names.size() > names()) missing.names.resize(names());
}

std::vector<base::Range> whole_extents(const std::vector<base::Range>& runs, uint64_t size_bytes,
                                       uint64_t extent_bytes) {
  std::vector<base::Range> whole;
  for (const base::Range& run : runs) {
    const uint64_t begin = (run.offset + extent_bytes - 1) / extent_bytes * extent_bytes;
    const uint64_t end = run.end() >= size_bytes ? size_bytes : run.end() / extent_bytes * extent_bytes;
    if (begin < end) whole.push_back({.offset = begin, .length = end - begin});
  }
  return whole;
}

bool good_holes(const std::vector<base::Range>& holes, uint64_t size_bytes, uint64_t extent_bytes) {
  uint64_t end_before = 0;
  for (const base::Range& hole : holes) {
    if (hole.offset < end_before || hole.offset >= size_bytes || hole.length == 0) return false;
    if (hole.length > size_bytes - hole.offset || hole.offset % extent_bytes != 0) return false;
    if (hole.end() != size_bytes && hole.end() % extent_bytes != 0) return false;
    end_before = hole.end();
  }
  return true;
}

CommonHoles common_holes(const std::vector<base::Range>& holes, const std::vector<base::Range>& others) {
  CommonHoles found;
  const auto add = [](std::vector<base::Range>* runs, uint64_t begin, uint64_t end) {
    if (begin < end) runs->push_back({.offset = begin, .length = end - begin});
  };
  auto other = others.begin();
  for (const base::Range& hole : holes) {
    uint64_t from = hole.offset;
    for (; other != others.end() && other->offset < hole.end(); ++other) {
      const uint64_t begin = std::max(from, other->offset);
      const uint64_t end = std::min(hole.end(), other->end());
      if (begin >= end) continue;
      add(&found.rest, from, begin);
      add(&found.common, begin, end);
      from = end;
      if (other->end() > hole.end()) break;  // the next hole may lie in it as well
    }
    add(&found.rest, from, hole.end());
  }
  return found;
}

FileId Catalog::add(File file) {
  const uint64_t size_bytes = file.size_bytes;
  bytes_total_ += size_bytes;
  names_ += file.names();
  has_packs_ = has_packs_ || file.packed();
  const FileId id = files_.push_back(std::move(file));
  objects_.push_back({.first_file = id, .file_count = 1, .size_bytes = size_bytes});
  return id;
}

std::span<const File> Catalog::files_of(ObjectId object) const {
  const Object& o = objects_[object];
  return {&files_[o.first_file], o.file_count};
}

std::span<File> Catalog::files_of(ObjectId object) {
  const Object& o = objects_[object];
  return {&files_[o.first_file], o.file_count};
}

}  // namespace sluice::catalog
