// SPDX-License-Identifier: Apache-2.0
#include "control/gather/preview.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <utility>

#include "control/exports/as_user.h"
#include "control/exports/beneath.h"
#include "control/gather/sources.h"

namespace sluice::gather {
namespace {

using catalog::Entry;
using catalog::EntryKind;
using catalog::Failure;

class Preview final : public SourceVisitor {
 public:
  Preview(const selection::Choice& choice, const TakePreview& take) : choice_(choice), take_(take) {}

  Status generated(const std::string& /*path*/, uint64_t bytes) override {
    return told({.path = fmt::format("memory-{}", bytes), .size_bytes = bytes});
  }

  Status file(const std::string& /*path*/, exports::SourceFile file) override {
    return told({.path = file.name, .size_bytes = file.size});
  }

  Status tree(const std::string& /*path*/, const exports::SourceTree& tree) override {
    return exports::walk_tree(tree, choice_, [&](Entry entry) -> Status {
      if (entry.kind == EntryKind::kFile && entry.failure == Failure::kNone &&
          !exports::open_beneath(tree.fd.get(), entry.path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY))
        entry.failure = exports::read_failure(errno);
      if (!tree.name.empty()) entry.path = entry.path.empty() ? tree.name : tree.name + "/" + entry.path;
      if (!catalog::good_path(entry.path) && entry.failure == Failure::kNone) entry.failure = Failure::kName;
      return told(entry);
    });
  }

  bool anything() const { return anything_; }

 private:
  Status told(const Entry& entry) {
    anything_ = true;
    return take_(entry);
  }

  const selection::Choice& choice_;
  const TakePreview& take_;
  bool anything_ = false;
};

}  // namespace

Status preview_sources(const exports::Exports& exports, const std::vector<std::string>& paths,
                       const selection::Selection& selection, const TakePreview& take) {
  if (exports::UserTrees* const trees = exports.trees_of_user(); trees != nullptr)
    return trees->preview(exports.peer(),
                          {.paths = paths, .selection = selection, .known = {}, .expected = {}}, take);
  const Result<selection::Choice> choice = selection::Choice::make(selection);
  if (!choice) return choice.error();
  Preview preview(*choice, take);
  if (Status status = visit_sources(exports, paths, *choice, preview); !status) return status;
  return preview.anything() ? Status() : nothing_to_send(*choice);
}

}  // namespace sluice::gather
