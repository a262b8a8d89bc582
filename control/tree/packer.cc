// SPDX-License-Identifier: Apache-2.0
#include "control/tree/packer.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "dataplane/base/counted.h"
#include "dataplane/base/text.h"

namespace sluice::tree {

using catalog::Entry;
using catalog::EntryKind;
using catalog::Failure;

namespace {

constexpr size_t kGrowAfter = 1000;  // packs, or large files
constexpr uint64_t kLargeBytesMax = 32U << 20;
constexpr uint64_t kPackBytesGrown = 64U << 20;

// For people, instead of a path that no pack can have: one component, so that it can stand in one.
std::string shortened(std::string path) {
  constexpr size_t kShownBytes = 255;
  path = path.substr(0, kShownBytes);
  for (char& c : path) c = c == '/' ? '_' : c;
  return path;
}

}  // namespace

Packer::Packer(PackerLimits limits, KnownNames known)
    : limits_(limits), known_(std::move(known)), packs_made_(known_.packs()), large_made_(known_.large()) {
  for (size_t i = 0; i < packs_made_ / kGrowAfter + large_made_ / kGrowAfter; ++i) grow();
}

void Packer::begin_tree(std::string path, std::string shown, std::string prefix) {
  close_pack();  // a pack is of one tree, whose files it is filled from
  tree_ = {std::move(path), std::move(shown), std::move(prefix)};
}

std::string Packer::arriving(const std::string& path) const {
  if (tree_.prefix.empty()) return path;
  return path.empty() ? tree_.prefix : tree_.prefix + "/" + path;
}

void Packer::add(Entry entry) {
  const std::string in_tree = entry.path;
  entry.path = arriving(in_tree);
  if (entry.kind == EntryKind::kFile) entry.expected = digests::expected_of(expected_, entry.path);
  if (entry.path.empty()) {  // of the tree itself, which arrives under no name
    if (entry.failure == Failure::kNone) {
      entry.path = catalog::kTop;
      directories_.push_back(std::move(entry));
    }
    return;
  }
  if (entry.kind == EntryKind::kHardLink) {
    entry.target = arriving(entry.target);
    if (!catalog::good_path(entry.target)) entry.failure = Failure::kName;  // as that of its first name
  }
  if (!catalog::good_path(entry.path)) {
    entry.failure = Failure::kName;
    entry.path = arriving(shortened(in_tree));
  }
  if (entry.failure != Failure::kNone) {
    entry.size_bytes = 0;
    entry.target.clear();
    entry.attributes = {};
    if (entry.kind != EntryKind::kDirectory) entry.kind = EntryKind::kFile;
  }
  // All directories are in one pack.
  if (entry.kind == EntryKind::kDirectory && (last_kept_ += kept_count(entry.attributes)) > kKeptMax) {
    entry.failure = Failure::kAttributesTooLarge;
    entry.attributes = {};
  }
  const bool good = entry.failure == Failure::kNone;
  if (good && entry.kind == EntryKind::kDirectory) return directories_.push_back(std::move(entry));
  if (known_.take(entry.path)) return;
  if (good && entry.kind == EntryKind::kHardLink) return links_.push_back(std::move(entry));
  if (entry.size_bytes > limits_.large_bytes) {
    if (large_made_++ % kGrowAfter == kGrowAfter - 1) grow();
    catalog::File file{.name = entry.path,
                       .shown = tree_.shown + "/" + base::printable(in_tree),
                       .path = tree_.path + "/" + in_tree,
                       .peer_path = {},
                       .size_bytes = entry.size_bytes};
    entry.path = in_tree;
    return large_.push_back({.file = std::move(file), .entry = std::move(entry)});
  }
  const uint64_t bytes = bytes_in_pack(entry);
  if (!open_.empty() && (open_bytes_ + bytes > limits_.pack_bytes || open_.size() == limits_.pack_entries))
    close_pack();
  open_bytes_ += bytes;
  open_.push_back(std::move(entry));
}

catalog::File Packer::pack_of(const std::vector<Entry>& entries, catalog::FileKind kind) const {
  catalog::File file{
      .name = {},
      .shown = fmt::format("{} ({} from {} on)", tree_.shown, base::counted(entries.size(), "name"),
                           base::printable(entries.front().path)),
      .path = tree_.path,
      .peer_path = {},
      .size_bytes = layout_of(entries).size_bytes,
      .kind = kind};
  file.pack.members = static_cast<uint32_t>(entries.size());
  file.pack.list = std::make_shared<const std::string>(to_bytes(entries));
  return file;
}

void Packer::grow() {
  limits_.large_bytes = std::min(4 * limits_.large_bytes, kLargeBytesMax);
  limits_.pack_bytes = std::min(4 * limits_.pack_bytes, kPackBytesGrown);
  limits_.pack_entries = std::min(4 * limits_.pack_entries, kEntriesMax);
}

void Packer::close_pack() {
  if (open_.empty()) return;
  packs_.push_back(pack_of(open_, catalog::FileKind::kPack));
  if (++packs_made_ % kGrowAfter == kGrowAfter - 1) grow();
  open_.clear();
  open_bytes_ = kPackHeadBytes;
}

std::vector<Packer::Large> Packer::take_large(size_t most) {
  const auto end = large_.begin() + static_cast<std::ptrdiff_t>(std::min(most, large_.size()));
  std::vector<Large> taken(std::make_move_iterator(large_.begin()), std::make_move_iterator(end));
  large_.erase(large_.begin(), end);
  return taken;
}

std::vector<catalog::File> Packer::take_closed() { return std::exchange(packs_, {}); }

std::vector<catalog::File> Packer::take_packs() {
  close_pack();
  return std::exchange(packs_, {});
}

// Links before directories: each changes the time of the directory that it is in.
catalog::File Packer::take_last() {
  std::vector<Entry> entries = std::exchange(links_, {});
  std::vector<Entry> directories = std::exchange(directories_, {});
  entries.insert(entries.end(), std::make_move_iterator(directories.begin()),
                 std::make_move_iterator(directories.end()));
  return pack_of(entries, catalog::FileKind::kLastPack);
}

}  // namespace sluice::tree
