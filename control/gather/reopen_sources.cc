// The files of a source, opened again: each has to be as it was.
// SPDX-License-Identifier: Apache-2.0
#include "control/gather/sources.h"
#include "dataplane/base/progress.h"

namespace sluice::gather {

Result<std::shared_ptr<exports::SourceFile>> reopen_source(const exports::Exports& exports,
                                                           const catalog::File& known) {
  Result<exports::SourceFile> opened = exports.open_source(known.path);
  if (!opened) return opened.error();
  if (opened->size != known.bytes_on_disk() || opened->mtime_ns != known.mtime_ns ||
      !catalog::same_file(opened->identity, known.identity))
    return Error{ErrorCode::kIntegrity,
                 known.shown + ": changed since the transfer began: nothing of it is stored, send it again"};
  return std::make_shared<exports::SourceFile>(std::move(*opened));
}

ReopenedSources reopen_sources(const exports::Exports& exports, const OpenSources& sources,
                               size_t kept_open) {
  ReopenedSources all{.open = sources.open, .failed = {}};
  for (size_t i = 0; i < sources.files.size(); ++i) {
    base::note_progress();
    const catalog::File& known = sources.files[i];
    if (known.path.empty() || known.packed() || known.failed() || sources.open[i]) continue;
    Result<std::shared_ptr<exports::SourceFile>> opened = reopen_source(exports, known);
    if (!opened) {
      all.failed.emplace_back(ObjectId(static_cast<uint32_t>(i)), opened.error());
    } else if (i < kept_open) {
      all.open[i] = std::move(*opened);
    }
  }
  return all;
}

}  // namespace sluice::gather
