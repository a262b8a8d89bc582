// Which lines of a list were found good before, so that a check that was interrupted resumes: a file of
// lines, one added for each.
//
// The first line names the list by its SHA-256, and the directory; each further one has the number of a line,
// and the mark of the file that was good (hash_file.h). A line that is cut off is ignored: its file is read
// again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <unordered_map>

#include "dataplane/base/error.h"
#include "dataplane/base/unique_fd.h"
#include "tools/manifest/hash_file.h"
#include "tools/manifest/survey.h"

namespace sluice::manifest {

class KnownGood {
 public:
  // Makes the file, or reads it. kUsage: it is of another list or directory, or no such file;
  // kDestinationExists: another check uses it now.
  static Result<KnownGood> open(const std::filesystem::path& file, const std::string& list_sha256,
                                const std::string& directory);

  bool has(uint64_t line, const FileMark& mark) const;
  // kStorage, kNoSpace: it cannot be written.
  Status add(uint64_t line, const FileMark& mark);
  // Nothing is left to resume.
  void remove();
  std::optional<FileId> id() const { return id_of(fd_.get()); }

 private:
  KnownGood(std::filesystem::path file, UniqueFd fd) : file_(std::move(file)), fd_(std::move(fd)) {}
  Status read(const std::string& head);
  Error cannot(const char* what) const;

  std::filesystem::path file_;
  UniqueFd fd_;
  std::unordered_map<uint64_t, FileMark> marks_;
};

}  // namespace sluice::manifest
