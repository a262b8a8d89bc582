// SPDX-License-Identifier: Apache-2.0
#include "control/gather/part_sources.h"

#include <utility>

#include "control/gather/sources.h"
#include "dataplane/base/text.h"

namespace sluice::gather {

Status take_part(const selection::FilePart& wished, catalog::File* file) {
  if (!selection::is_part(wished)) return {};
  Result<selection::FilePart> part = selection::part_of_file(wished, file->size_bytes);
  if (!part) return Error{part.error().code, file->shown + ": " + part.error().message};
  file->part = std::move(*part);
  file->size_bytes = selection::part_bytes(file->part);
  file->holes.clear();
  return {};
}

Status check_one_file(const exports::Exports& exports, const std::vector<std::string>& paths,
                      const selection::Choice& choice) {
  const auto wrong = [](const std::string& what) {
    return Error{ErrorCode::kUsage,
                 what + ": a part (--part) is of one file, without rules and lists of names"};
  };
  if (paths.size() != 1 || !choice.everything()) return wrong("several names");
  const auto memory = parse_memory_source(paths.front());
  if (!memory) return memory.error();
  if (memory->has_value()) return wrong(paths.front());
  const auto tree = exports.open_tree(paths.front());
  if (!tree) return tree.error();
  return tree->has_value() ? Status(wrong(base::printable(paths.front()))) : Status();
}

}  // namespace sluice::gather
