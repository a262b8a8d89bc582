// The list of a dataset, kept in a file between the planner's two readings: files, links, and files with
// several names.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/base/error.h"

namespace sluice::fleet {

struct Listed {
  uint64_t bytes = 0;
  std::vector<std::string> names;  // relative to the dataset; several: hard links to one file
};

class NamesWriter {
 public:
  static Result<NamesWriter> open(const std::filesystem::path& path);
  void add(uint64_t bytes, const std::string* names, size_t count);
  Status finish();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  NamesWriter(std::filesystem::path path, std::FILE* file) : path_(std::move(path)), file_(file) {}
  std::filesystem::path path_;
  std::unique_ptr<std::FILE, Close> file_;
};

class NamesReader {
 public:
  static Result<NamesReader> open(const std::filesystem::path& path);
  // False at the end. What was read is as it was written, or the process's own disk lies: kStorage.
  Result<bool> next(Listed* listed);

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  explicit NamesReader(std::FILE* file) : file_(file) {}
  std::unique_ptr<std::FILE, Close> file_;
};

}  // namespace sluice::fleet
