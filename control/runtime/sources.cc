// SPDX-License-Identifier: Apache-2.0
#include "control/runtime/sources.h"

#include <fmt/format.h>

#include <map>

#include "control/async/clock.h"
#include "control/transfer/terms.h"

namespace sluice::runtime {
namespace {

Error usage(std::string message) { return {ErrorCode::kUsage, std::move(message)}; }

catalog::File file_of(const std::string& path, const exports::SourceFile& opened) {
  return {.name = opened.name,
          .shown = opened.path,
          .path = path,
          .peer_path = {},
          .size_bytes = opened.size,
          .mode = opened.mode,
          .mtime_ns = opened.mtime_ns,
          .ctime_ns = opened.ctime_ns,
          .identity = opened.identity,
          .suspect = opened.may_be_changing};
}

// At the destination they would be one file.
Status check_names(const OpenSources& sources) {
  std::map<std::string_view, const catalog::File*> known;
  for (const catalog::File& file : sources.files) {
    if (file.path.empty()) continue;
    const auto [other, added] = known.emplace(file.name, &file);
    if (!added)
      return usage(
          fmt::format("{} and {} would be one file at the destination, {}: send one of them by itself",
                      other->second->shown, file.shown, file.name));
  }
  return {};
}

}  // namespace

Result<std::optional<uint64_t>> parse_memory_source(std::string_view source) {
  if (!source.starts_with(transfer::kMemoryPrefix)) return std::optional<uint64_t>();
  const Result<uint64_t> bytes = config::parse_size(source.substr(transfer::kMemoryPrefix.size()));
  if (!bytes) return usage(fmt::format("{}: {}", source, bytes.error().message));
  if (*bytes > catalog::kFileBytesMax) return usage(fmt::format("{}: at most 1 EiB", source));
  return std::optional<uint64_t>(*bytes);
}

Result<OpenSources> open_sources(const exports::Exports& exports, const std::vector<std::string>& paths) {
  if (paths.empty()) return usage("no source given: name at least one file");
  if (paths.size() > catalog::kFilesMax)
    return usage(fmt::format("{} sources: a session takes at most {}", paths.size(), catalog::kFilesMax));
  OpenSources sources;
  for (const std::string& path : paths) {
    const Result<std::optional<uint64_t>> generated_bytes = parse_memory_source(path);
    if (!generated_bytes) return generated_bytes.error();
    if (generated_bytes->has_value()) {
      catalog::File file{.name = fmt::format("memory-{}", **generated_bytes), .shown = path};
      file.size_bytes = **generated_bytes;
      file.mtime_ns = control::unix_ns();
      sources.files.push_back(std::move(file));
      sources.open.push_back(nullptr);
      continue;
    }
    Result<exports::SourceFile> opened = exports.open_source(path);
    if (!opened) return opened.error();
    sources.files.push_back(file_of(path, *opened));
    if (opened->size > catalog::kFileBytesMax) return usage(opened->path + ": larger than 1 EiB");
    sources.open.push_back(std::make_shared<exports::SourceFile>(std::move(*opened)));
  }
  if (Status status = check_names(sources); !status) return status.error();
  return sources;
}

Result<OpenSources> reopen_sources(const exports::Exports& exports, OpenSources sources) {
  for (size_t i = 0; i < sources.files.size(); ++i) {
    const catalog::File& known = sources.files[i];
    if (known.path.empty() || sources.open[i]) continue;
    Result<exports::SourceFile> opened = exports.open_source(known.path);
    if (!opened) return opened.error();
    if (opened->size != known.size_bytes || opened->mtime_ns != known.mtime_ns ||
        !catalog::same_file(opened->identity, known.identity)) {
      return Error{
          ErrorCode::kIntegrity,
          known.shown + ": changed since the transfer began: nothing of it is stored, send it again"};
    }
    sources.open[i] = std::make_shared<exports::SourceFile>(std::move(*opened));
  }
  return sources;
}

}  // namespace sluice::runtime
