// SPDX-License-Identifier: Apache-2.0
#include "control/gather/sources.h"

#include <fmt/format.h>

#include <iterator>
#include <map>
#include <utility>
#include <variant>

#include "control/async/clock.h"
#include "control/exports/as_user.h"
#include "control/exports/holes.h"
#include "control/exports/owners.h"
#include "control/exports/xattrs.h"
#include "control/gather/part_sources.h"
#include "control/selection/choice.h"
#include "control/tree/packer.h"
#include "control/words/failures.h"
#include "control/words/terms.h"
#include "dataplane/base/check.h"
#include "dataplane/base/text.h"

namespace sluice::gather {
namespace {

Error usage(std::string message) { return {ErrorCode::kUsage, std::move(message)}; }

// Its extended attributes and ACLs are read by kept_of().
catalog::File file_of(const std::string& path, const exports::SourceFile& opened, const catalog::Keep& keep,
                      exports::Accounts& accounts) {
  return {.name = opened.name,
          .shown = opened.path,
          .path = path,
          .size_bytes = opened.size,
          .mode = opened.mode,
          .mtime_ns = opened.mtime_ns,
          .ctime_ns = opened.ctime_ns,
          .identity = opened.identity,
          .suspect = opened.may_be_changing,
          .holes = exports::holes_of(opened.fd.get(), opened.size),
          .keep = keep,
          .attributes = accounts.attributes(opened.uid, opened.gid, keep)};
}

size_t kept_bytes(const std::vector<catalog::File>& files) {
  size_t bytes = 0;
  for (const catalog::File& file : files) bytes += file.attributes.kept_bytes();
  return bytes;
}

uint64_t bytes_of(const std::vector<catalog::File>& files) {
  uint64_t bytes = 0;
  for (const catalog::File& file : files) bytes += file.packed() ? 0 : file.size_bytes;
  return std::min(bytes, transfer::kSessionBytesMax);
}

// One error for all that a session cannot take.
Error too_many(size_t files) {
  return usage(
      fmt::format("{} files that are large, or named one by one: a session takes at most {}; send parts of "
                  "them by themselves",
                  files, catalog::kFilesMax));
}

constexpr uint64_t kTiB = 1ULL << 40;

// Told before anything is made that grows with the number of bytes: a sparse file may say any size.
Error too_large(const std::string& shown, uint64_t bytes) {
  return {
      ErrorCode::kResources,
      fmt::format("{}: with its {:.1f} TiB the session would have more than {} TiB, and takes no more; leave "
                  "it out (--exclude), or send it in pieces",
                  shown, static_cast<double>(bytes) / static_cast<double>(kTiB),
                  transfer::kSessionBytesMax / kTiB)};
}

// It is one, so that all else is there when it is unpacked.
Status check_last(const catalog::File& last) {
  if (last.pack.members <= tree::kEntriesMax && last.size_bytes <= tree::kPackBytesMax) return {};
  return usage(
      fmt::format("{} directories and hard links: a session takes at most {}; send parts of the tree by "
                  "themselves",
                  last.pack.members, tree::kEntriesMax));
}

// What is sent, in the order in which it travels, while it is looked for.
class Gathering final : public SourceVisitor {
 public:
  // `sink`: of parts; nothing: all at once.
  Gathering(const exports::Exports& exports, const selection::Choice& choice, tree::KnownNames known,
            size_t kept_bytes, uint64_t bytes, SourceSink* sink, size_t kept_open)
      : exports_(exports),
        choice_(choice),
        handed_(known.packs() + known.large()),
        kept_bytes_(kept_bytes),
        bytes_(bytes),
        kept_open_(kept_open),
        packer_({}, std::move(known)),
        sink_(sink) {}

  void expect(std::shared_ptr<const digests::Expected> list) { packer_.expect(std::move(list)); }

  Result<OpenSources> finish() {
    OpenSources all = part(packer_.take_packs(), sources_.files.size());
    if (packer_.has_last()) {
      all.files.push_back(packer_.take_last());
      all.files.back().keep = choice_.keep();
      all.open.push_back(nullptr);
      if (Status status = check_last(all.files.back()); !status) return status.error();
    }
    if (handed_ + all.files.size() > catalog::kFilesMax) return too_many(handed_ + all.files.size());
    if (handed_ + all.files.size() == 0) return nothing_to_send(choice_);
    return all;
  }

  Status generated(const std::string& path, uint64_t bytes) override {
    catalog::File file{.name = fmt::format("memory-{}", bytes), .shown = path};
    if (packer_.knows(file.name)) return {};
    if (Status status = take_bytes(path, bytes); !status) return status;
    file.size_bytes = bytes;
    file.keep = choice_.keep();
    file.mtime_ns = async::unix_ns();
    sources_.files.push_back(std::move(file));
    sources_.open.push_back(nullptr);
    return {};
  }

  Status file(const std::string& path, exports::SourceFile opened) override {
    if (packer_.knows(opened.name)) return {};
    catalog::File file = file_of(path, opened, choice_.keep(), accounts_);
    if (Status status = take_part(choice_.part(), &file); !status) return status;
    if (Status status = take_bytes(opened.path, file.size_bytes); !status) return status;
    if (const catalog::Failure failure = kept_of(opened, &file.attributes);
        failure != catalog::Failure::kNone)
      return Error{failure == catalog::Failure::kAttributesTooLarge ? ErrorCode::kAttributes
                                                                    : ErrorCode::kSourceUnreadable,
                   opened.path + ": " + std::string(catalog::failure_text(failure)) +
                       ": of its extended attributes or ACL; mend them, or leave out --xattrs and --acls"};
    add_open(std::move(file), std::move(opened));
    return {};
  }

  Status tree(const std::string& path, const exports::SourceTree& tree) override {
    packer_.begin_tree(path, tree.path, tree.name);
    const Status walked = exports::walk_tree(tree, choice_, [this](catalog::Entry entry) -> Status {
      if (entry.kind == catalog::EntryKind::kFile) {
        if (Status status = take_bytes(base::printable(entry.path), entry.size_bytes); !status) return status;
      }
      packer_.add(std::move(entry));
      if (const size_t files = handed_ + packer_.large_count() + sources_.files.size();
          files > catalog::kFilesMax)
        return too_many(files);
      return sink_ == nullptr ? Status() : hand_over();
    });
    if (!walked) return walked;
    open_large(packer_.large_count());  // while this tree is the packer's
    return {};
  }

 private:
  Status take_bytes(const std::string& shown, uint64_t bytes) {
    if (bytes > transfer::kSessionBytesMax - bytes_) return too_large(shown, bytes);
    bytes_ += bytes;
    DCHECK(bytes_ <= transfer::kSessionBytesMax, "no more than a session takes");
    return {};
  }

  // Added to what is there already. Each of these files is told to the peer by itself.
  catalog::Failure kept_of(const exports::SourceFile& file, catalog::Attributes* attributes) {
    const catalog::Failure failure =
        exports::read_kept(file.fd.get(), false, choice_.keep(), accounts_, attributes);
    if (failure != catalog::Failure::kNone) return failure;
    if (kept_bytes_ + attributes->kept_bytes() > catalog::kKeptBytesOfAllMax)
      return catalog::Failure::kAttributesTooLarge;
    kept_bytes_ += attributes->kept_bytes();
    return catalog::Failure::kNone;
  }

  // Enough to be worth a word to the peer and a row of the journal.
  static constexpr size_t kLargePerPart = 64;
  // Few objects are open at a time, and a long file among them holds up those that are so many behind it.
  static constexpr size_t kPacksPerLarge = catalog::kOpenWithPacksMax / 2;

  // Large files that go with these packs; no more of them wait than are worth a part.
  size_t large_due(size_t packs) const {
    const size_t waiting = sources_.files.size() + packer_.large_count();
    if (packs == 0) return waiting;
    const size_t due = packs_since_large_ >= kPacksPerLarge ? 1 : 0;
    return std::max(due, waiting - std::min(waiting, kLargePerPart - 1));
  }

  Status hand_over() {
    DCHECK(sink_ != nullptr, "somebody takes the parts");
    if (Status status = sink_->go_on(); !status) return status;
    const size_t packs = packer_.closed_count();
    if (packs == 0 && packer_.large_count() < kLargePerPart) return {};
    const size_t due = large_due(packs);
    open_large(due - std::min(due, sources_.files.size()));
    OpenSources found = part(packer_.take_closed(), due);
    handed_ += found.files.size();
    return sink_->take(std::move(found));
  }

  // The first of the large files, evenly among the packs and behind the first of these.
  OpenSources part(std::vector<catalog::File> packs, size_t most_large) {
    OpenSources found;
    const size_t large = std::min(most_large, sources_.files.size());
    const auto add_large = [&](size_t i) {
      found.files.push_back(std::move(sources_.files[i]));
      found.open.push_back(std::move(sources_.open[i]));
    };
    size_t added = 0;
    for (size_t i = 0; i < packs.size(); ++i) {
      while (added < large && (added + 1) * packs.size() <= i * (large + 1)) add_large(added++);
      packs[i].keep = choice_.keep();
      found.files.push_back(std::move(packs[i]));
      found.open.push_back(nullptr);
    }
    while (added < large) add_large(added++);
    const auto taken = static_cast<std::ptrdiff_t>(large);
    sources_.files.erase(sources_.files.begin(), sources_.files.begin() + taken);
    sources_.open.erase(sources_.open.begin(), sources_.open.begin() + taken);
    packs_since_large_ = large > 0 ? 0 : packs_since_large_ + packs.size();
    DCHECK(added == large && found.files.size() == found.open.size(), "each file has its place");
    return found;
  }

  void open_large(size_t most) {
    for (tree::Packer::Large& large : packer_.take_large(most)) {
      catalog::Failure why = catalog::Failure::kNone;
      Result<exports::SourceFile> opened = exports_.open_source(large.file.path, &why);
      if (!opened) {
        large.entry.failure = transfer::failure_at_source(opened.error().code, why);
        packer_.add(std::move(large.entry));
        continue;
      }
      catalog::File file = file_of(large.file.path, *opened, choice_.keep(), accounts_);
      file.name = std::move(large.file.name);
      if (const catalog::Failure failure = kept_of(*opened, &file.attributes);
          failure != catalog::Failure::kNone) {
        large.entry.failure = failure;
        packer_.add(std::move(large.entry));
        continue;
      }
      add_open(std::move(file), std::move(*opened));
    }
  }
  void add_open(catalog::File file, exports::SourceFile opened) {
    const bool stays = handed_ + sources_.files.size() < kept_open_;
    sources_.files.push_back(std::move(file));
    sources_.open.push_back(stays ? std::make_shared<exports::SourceFile>(std::move(opened)) : nullptr);
  }

  const exports::Exports& exports_;
  const selection::Choice& choice_;
  size_t handed_ = 0;  // files, to the sink, or known
  size_t packs_since_large_ = kPacksPerLarge;
  size_t kept_bytes_ = 0;
  uint64_t bytes_ = 0;  // of files, at most kSessionBytesMax
  const size_t kept_open_;
  tree::Packer packer_;
  OpenSources sources_;
  exports::Accounts accounts_;
  SourceSink* const sink_;
};

// At the destination two of one name would be one file.
class Names {
 public:
  Status note(const std::string& name, const std::string& shown) {
    if (name.empty()) return {};  // of "DIR/", whose names are found there one by one
    const auto [other, added] = known_.emplace(name, shown);
    if (added) return {};
    return usage(fmt::format("{} and {} would be one file at the destination, {}: send one of them by itself",
                             other->second, shown, name));
  }

 private:
  std::map<std::string, std::string> known_;
};

// What a path leads to, before anything in it is looked at: bytes that are generated, a directory, a file.
using Found = std::variant<uint64_t, exports::SourceTree, exports::SourceFile>;

// Nothing: the rules leave it out.
Result<std::optional<Found>> find(const exports::Exports& exports, const std::string& path,
                                  const selection::Choice& choice, Names& names) {
  const Result<std::optional<uint64_t>> generated_bytes = parse_memory_source(path);
  if (!generated_bytes) return generated_bytes.error();
  if (generated_bytes->has_value() && choice.names() == nullptr)
    return std::optional<Found>(**generated_bytes);
  Result<std::optional<exports::SourceTree>> tree = exports.open_tree(path);
  if (!tree) return tree.error();
  if (tree->has_value()) {
    if (!choice.filter().takes((*tree)->name, true)) return std::optional<Found>();
    if (Status status = names.note((*tree)->name, (*tree)->path); !status) return status.error();
    return std::optional<Found>(std::move(**tree));
  }
  if (choice.names() != nullptr) {  // it may be a directory that only its caller may look into
    const auto file = exports.open_source(path.substr(0, path.find_last_not_of('/') + 1));
    return file ? usage(base::printable(path) + ": is no directory, and a list of names is of one")
                : file.error();
  }
  if (!choice.filter().takes(catalog::last_name(path), false)) return std::optional<Found>();
  Result<exports::SourceFile> opened = exports.open_source(path);
  if (!opened) return opened.error();
  if (opened->size > catalog::kFileBytesMax) return usage(opened->path + ": larger than 1 EiB");
  if (Status status = names.note(opened->name, opened->path); !status) return status.error();
  return std::optional<Found>(std::move(*opened));
}

Status visit(const std::string& path, Found found, SourceVisitor& visitor) {
  if (const auto* const bytes = std::get_if<uint64_t>(&found)) return visitor.generated(path, *bytes);
  if (const auto* const tree = std::get_if<exports::SourceTree>(&found)) return visitor.tree(path, *tree);
  return visitor.file(path, std::get<exports::SourceFile>(std::move(found)));
}

// As open_sources(), by the process of a user. Its files are opened when their turn comes.
Result<OpenSources> sources_of_user(const exports::Exports& exports, exports::UserTrees& trees,
                                    const exports::UserTrees::Wish& wish, SourceSink* sink) {
  const auto found = [](std::vector<catalog::File> files) {
    OpenSources part{.files = std::move(files), .open = {}, .rest = nullptr};
    part.open.resize(part.files.size());
    return part;
  };
  const exports::UserTrees::Take take{.go_on = [sink] { return sink == nullptr ? Status() : sink->go_on(); },
                                      .part =
                                          [sink, &found](std::vector<catalog::File> files) {
                                            DCHECK(sink != nullptr, "parts come to whoever asked for them");
                                            return sink->take(found(std::move(files)));
                                          }};
  Result<std::vector<catalog::File>> rest = trees.list(exports.peer(), wish, take);
  if (!rest) return rest.error();
  return found(std::move(*rest));
}

}  // namespace

Result<std::optional<uint64_t>> parse_memory_source(std::string_view source) {
  if (!source.starts_with(transfer::kMemoryPrefix)) return std::optional<uint64_t>();
  const Result<uint64_t> bytes = config::parse_size(source.substr(transfer::kMemoryPrefix.size()));
  if (!bytes) return usage(fmt::format("{}: {}", source, bytes.error().message));
  if (*bytes > catalog::kFileBytesMax) return usage(fmt::format("{}: at most 1 EiB", source));
  return std::optional<uint64_t>(*bytes);
}

Status visit_sources(const exports::Exports& exports, const std::vector<std::string>& paths,
                     const selection::Choice& choice, SourceVisitor& visitor) {
  if (paths.empty()) return usage("no source given: name at least one file");
  if (paths.size() > catalog::kFilesMax)
    return usage(fmt::format("{} sources: a session takes at most {}", paths.size(), catalog::kFilesMax));
  // All of them first: whoever names one that is not there learns it before a tree is walked, and sent.
  Names names;
  std::vector<std::pair<std::string, Found>> all;
  for (std::string path : paths) {
    // Names arrive as they are listed, without that of the directory: as of "DIR/".
    if (choice.names() != nullptr && !path.ends_with('/')) path += '/';
    Result<std::optional<Found>> found = find(exports, path, choice, names);
    if (!found) return found.error();
    if (found->has_value()) all.emplace_back(std::move(path), std::move(**found));
  }
  for (auto& [path, found] : all) {
    if (Status status = visit(path, std::move(found), visitor); !status) return status;
  }
  return {};
}

Error nothing_to_send(const selection::Choice& choice) {
  return usage(choice.everything() ? "nothing to send: the directory holds nothing"
                                   : "nothing to send: the rules or the list leave nothing of it");
}

Result<OpenSources> open_sources(const exports::Exports& exports, const std::vector<std::string>& paths,
                                 const selection::Selection& selection, SourceSink* sink,
                                 const std::vector<catalog::File>& known, size_t kept_open,
                                 std::shared_ptr<const digests::Expected> expected) {
  if (exports::UserTrees* const trees = exports.trees_of_user(); trees != nullptr)
    return sources_of_user(exports, *trees,
                           {.paths = paths,
                            .selection = selection,
                            .known = known,
                            .expected = std::move(expected),
                            .by_parts = sink != nullptr},
                           sink);
  const Result<selection::Choice> choice = selection::Choice::make(selection);
  if (!choice) return choice.error();
  Result<tree::KnownNames> names = tree::KnownNames::of(known);
  if (!names) return names.error();
  Gathering gathering(exports, *choice, std::move(*names), kept_bytes(known), bytes_of(known), sink,
                      kept_open);
  if (selection::is_part(selection.part)) {
    if (Status status = check_one_file(exports, paths, *choice); !status) return status.error();
  }
  gathering.expect(std::move(expected));
  if (Status status = visit_sources(exports, paths, *choice, gathering); !status) return status.error();
  return gathering.finish();
}

}  // namespace sluice::gather
