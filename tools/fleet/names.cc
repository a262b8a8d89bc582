// SPDX-License-Identifier: Apache-2.0
#include "tools/fleet/names.h"

#include "dataplane/base/path.h"
#include "tools/fleet/files.h"

namespace sluice::fleet {
namespace {

struct Head {
  uint64_t bytes = 0;
  uint64_t names = 0;
};

Error broken() {
  return {ErrorCode::kStorage, "the list of names changed while it was read; make the plan again"};
}

}  // namespace

Result<NamesWriter> NamesWriter::open(const std::filesystem::path& path) {
  std::FILE* const file = std::fopen(path.c_str(), "we");
  if (file == nullptr) return cannot_be(path, "written");
  return NamesWriter(path, file);
}

void NamesWriter::add(uint64_t bytes, const std::string* names, size_t count) {
  const Head head{.bytes = bytes, .names = count};
  std::fwrite(&head, sizeof head, 1, file_.get());
  for (size_t i = 0; i < count; ++i) {
    const uint32_t length = static_cast<uint32_t>(names[i].size());
    std::fwrite(&length, sizeof length, 1, file_.get());
    std::fwrite(names[i].data(), 1, length, file_.get());
  }
}

Status NamesWriter::finish() {
  if (std::fflush(file_.get()) == 0 && std::ferror(file_.get()) == 0) return {};
  return cannot_be(path_, "written");
}

Result<NamesReader> NamesReader::open(const std::filesystem::path& path) {
  std::FILE* const file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return cannot_be(path, "read");
  return NamesReader(file);
}

Result<bool> NamesReader::next(Listed* listed) {
  Head head;
  const size_t got = std::fread(&head, 1, sizeof head, file_.get());
  if (got == 0 && std::feof(file_.get()) != 0) return false;
  if (got != sizeof head) return broken();
  listed->bytes = head.bytes;
  listed->names.resize(head.names);
  for (std::string& name : listed->names) {
    uint32_t length = 0;
    if (std::fread(&length, sizeof length, 1, file_.get()) != 1 || length > base::kPathBytesMax)
      return broken();
    name.resize(length);
    if (std::fread(name.data(), 1, length, file_.get()) != length) return broken();
  }
  return true;
}

}  // namespace sluice::fleet
