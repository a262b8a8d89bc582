// SPDX-License-Identifier: Apache-2.0
#include "control/session/source_item.h"

#include <fmt/format.h>

#include <chrono>

#include "control/session/options.h"

namespace sluice::control {

Result<std::vector<SourceItem>> open_sources(const exports::Exports& exports,
                                             const std::vector<std::string>& paths) {
  if (paths.empty()) return Error{ErrorCode::kUsage, "no source given: name at least one file"};
  if (paths.size() > kFilesMax) {
    return Error{ErrorCode::kUsage,
                 fmt::format("{} sources: a session takes at most {}", paths.size(), kFilesMax)};
  }
  std::vector<SourceItem> items;
  for (const std::string& path : paths) {
    SourceItem item;
    item.shown = path;
    Result<std::optional<uint64_t>> memory = parse_memory_source(path);
    if (!memory) return memory.error();
    if (memory->has_value()) {
      item.name = fmt::format("memory-{}", **memory);
      item.size = **memory;
      item.mtime_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                          std::chrono::system_clock::now().time_since_epoch())
                          .count();
    } else {
      Result<exports::SourceFile> file = exports.open_source(path);
      if (!file) return file.error();
      item.shown = file->path;
      item.name = file->name;
      item.size = file->size;
      item.mode = file->mode;
      item.mtime_ns = file->mtime_ns;
      item.path = path;
      item.device = file->device;
      item.inode = file->inode;
      item.file = std::make_shared<exports::SourceFile>(std::move(*file));
    }
    if (item.size > kFileBytesMax) {
      return Error{ErrorCode::kUsage, fmt::format("{}: larger than 1 EiB", item.shown)};
    }
    items.push_back(std::move(item));
  }
  return items;
}

}  // namespace sluice::control
