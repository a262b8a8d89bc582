// SPDX-License-Identifier: Apache-2.0
#include "control/users/tree_words.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "control/proto/digest_fields.h"
#include "control/proto/fields.h"
#include "control/proto/file_rows.h"
#include "control/proto/range_fields.h"
#include "control/selection/choice.h"
#include "control/tree/pack.h"
#include "dataplane/base/path.h"

namespace sluice::users {
namespace {

using exports::UserTrees;

constexpr size_t kStagingMax = 255;
constexpr int kForgottenMax = 1024;

void put_wish(const UserTrees::Wish& from, wire::ListWish* to) {
  for (const std::string& path : from.paths) to->add_paths(path);
  selection::put_selection(from.selection, to);
  to->set_keep(from.selection.keep.bits());
  peer::put_part(from.selection.part, to);
  for (const catalog::File& file : from.known) to->add_known(journal::encode(file));
}

std::optional<UserTrees::Wish> wish_of(const wire::ListWish& from) {
  UserTrees::Wish to{.paths = {from.paths().begin(), from.paths().end()},
                     .selection = selection::selection_of(from),
                     .known = {},
                     .expected = nullptr};
  to.selection.keep = selection::Keep::of(from.keep());
  to.selection.part = peer::part_of(from);
  const auto good = [](const std::string& path) { return plain(path, 2 * base::kPathBytesMax); };
  if (to.paths.empty() || to.paths.size() > catalog::kFilesMax || !std::ranges::all_of(to.paths, good) ||
      !selection::check_selection(to.selection, to.paths.size()))
    return std::nullopt;
  for (const std::string& row : from.known()) {
    std::optional<catalog::File> file = journal::decode_file(row);
    if (!file) return std::nullopt;
    to.known.push_back(std::move(*file));
  }
  return to;
}

// Which a call of its kind has.
bool is_of_pack(Kind kind) {
  return kind == Kind::kFillPack || kind == Kind::kLookAtPack || kind == Kind::kStagePack ||
         kind == Kind::kRemoveStaging;
}

// At a source its path is as it was asked for, at a destination absolute.
bool good_pack(const catalog::File& pack, Kind kind) {
  const bool of_source = kind == Kind::kFillPack || kind == Kind::kLookAtPack;
  return pack.packed() && !pack.path.empty() && (of_source || pack.path.starts_with('/')) &&
         plain(pack.path, 2 * base::kPathBytesMax) && pack.size_bytes <= tree::kPackBytesMax;
}

void put_missing(const catalog::Shortfall& from, wire::Answer* to) {
  to->set_failed(from.failed);
  to->set_left_out(from.left_out);
  peer::set_failures(from.names, to);
}

}  // namespace

void put_tree(const Call& from, wire::Call* to) {
  const TreeCall& tree = from.tree;
  if (tree.pack) to->set_file(journal::encode(*tree.pack));
  to->set_staging(tree.staging);
  to->set_pack(tree.number);
  for (const uint64_t number : tree.forgotten) to->add_forgotten(number);
  const bool listed = tree.wish && tree.wish->expected;
  for (const auto& [path, values] : listed ? *tree.wish->expected : tree.expected)
    peer::put_named({.path = path, .size_bytes = 0, .target = {}, .values = values}, to->add_expected());
  if (tree.wish) put_wish(*tree.wish, to->mutable_list());
}

bool tree_of(const wire::Call& from, Call* to) {
  TreeCall& tree = to->tree;
  tree.staging = from.staging();
  tree.number = from.pack();
  if (from.forgotten_size() > kForgottenMax || !plain(tree.staging, kStagingMax) ||
      tree.staging.find('/') != std::string::npos)
    return false;
  tree.forgotten.assign(from.forgotten().begin(), from.forgotten().end());
  for (const peer::NamedDigests& name : from.expected())
    tree.expected.insert_or_assign(name.path(), peer::digests_of(name.digests()));
  if (to->kind == Kind::kList || to->kind == Kind::kPreview) {
    tree.wish = wish_of(from.list());
    if (tree.wish && !tree.expected.empty())
      tree.wish->expected = std::make_shared<const digests::Expected>(std::exchange(tree.expected, {}));
    return tree.wish.has_value();
  }
  if (is_of_pack(to->kind)) {
    tree.pack = journal::decode_file(from.file());
    return tree.pack && good_pack(*tree.pack, to->kind) &&
           (to->kind != Kind::kStagePack || !tree.staging.empty());
  }
  return true;
}

void put_tree(const Answer& from, wire::Answer* to) {
  to->set_failure(static_cast<uint32_t>(from.failure));
  for (const catalog::File& file : from.files) to->add_files(journal::encode(file));
  if (!from.entries.empty()) to->set_entries(tree::to_bytes(from.entries));
  to->set_ended(from.ended);
  put_missing(from.missing, to);
  for (const digests::Named& name : from.digests) peer::put_named(name, to->add_digests());
}

bool tree_of(const wire::Answer& from, Answer* to) {
  to->failure = catalog::failure_of(from.failure());
  for (const std::string& row : from.files()) {
    std::optional<catalog::File> file = journal::decode_file(row);
    if (!file || file->state != catalog::FileState::kOpen) return false;
    file->list = catalog::ListState::kWhole;
    to->files.push_back(std::move(*file));
  }
  if (!from.entries().empty()) {
    Result<std::vector<catalog::Entry>> entries = tree::from_bytes(from.entries());
    if (!entries) return false;
    to->entries = std::move(*entries);
  }
  to->ended = from.ended();
  to->missing.failed = from.failed();
  to->missing.left_out = from.left_out();
  if (static_cast<size_t>(from.failures_size()) > catalog::kFailuresKept) return false;
  to->missing.names = peer::failures_of(from);
  for (const peer::NamedDigests& name : from.digests()) to->digests.push_back(peer::named_of(name));
  return true;
}

}  // namespace sluice::users
