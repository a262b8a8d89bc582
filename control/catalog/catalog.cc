// SPDX-License-Identifier: Apache-2.0
#include "control/catalog/catalog.h"

namespace sluice::catalog {

bool same_file(const FileIdentity& one, const FileIdentity& other) {
  const auto may_be = [](auto a, auto b) { return a == b || a == 0 || b == 0; };
  return one.device == other.device && one.inode == other.inode && may_be(one.generation, other.generation) &&
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
