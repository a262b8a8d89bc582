// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/sync_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "control/selection/name_list.h"

namespace sluice::cli {
namespace {

std::string_view kind_of(api::NameEntry::Type type) {
  if (type == api::NameEntry::FILE) return "a file";
  if (type == api::NameEntry::DIRECTORY) return "a directory";
  return type == api::NameEntry::LINK ? "a link" : "a device, pipe or socket";
}

}  // namespace

// Large files share a session's objects with packs, of which a list makes far fewer than a session takes.
SyncPlan::Limits SyncPlan::limits_of_a_session() {
  return {.names = selection::kNamesMax,
          .bytes = selection::kNamesBytesMax,
          .large_files = 2000,
          .large_file_bytes = 1U << 20};
}

void SyncPlan::add(const api::NameDifference& difference) {
  const bool is_directory = difference.type() == api::NameEntry::DIRECTORY;
  switch (difference.kind()) {
    case api::NameDifference::MISSING:
    case api::NameDifference::DIFFERENT:
      if (refuse(difference)) break;
      bytes_ += difference.size();
      (is_directory ? directories_ : files_)
          .push_back({.path = difference.path(),
                      .large = difference.size() >= limits_.large_file_bytes,
                      .missing = difference.kind() == api::NameDifference::MISSING});
      break;
    case api::NameDifference::EXTRA:
      if (removes_) add_extra(difference);
      break;
    case api::NameDifference::KEPT:
      kept_.insert(difference.path());
      break;
    default:
      break;
  }
}

// Files and links replace each other, but no file of an object of its own replaces a link. A node that does
// not say what stands there refuses while it is sent.
bool SyncPlan::in_the_way(const api::NameDifference& difference) const {
  const auto there = difference.destination_type();
  if (there == api::NameEntry::UNKNOWN || there == difference.type()) return false;
  if (difference.type() == api::NameEntry::DIRECTORY) return true;
  if (there == api::NameEntry::LINK) return difference.size() > limits_.large_file_bytes;
  return there != api::NameEntry::FILE;
}

bool SyncPlan::refuse(const api::NameDifference& difference) {
  const std::string& path = difference.path();
  if (in_the_way(difference)) {
    refusals_.push_back(
        {.path = path,
         .reason = fmt::format("is of another kind there: {} is never replaced by {}; remove it there, or "
                               "rename one of them",
                               kind_of(difference.destination_type()), kind_of(difference.type()))});
    if (difference.type() == api::NameEntry::DIRECTORY) refused_directory_ = path + "/";
    return true;
  }
  if (refused_directory_.empty() || !path.starts_with(refused_directory_)) return false;
  refusals_.push_back({.path = path, .reason = "a directory that it is in is of another kind there"});
  return true;
}

// A directory takes with it what was told of it before.
void SyncPlan::add_extra(const api::NameDifference& difference) {
  const bool is_directory = difference.type() == api::NameEntry::DIRECTORY;
  const std::string beneath = difference.path() + "/";
  while (is_directory && !removals_.empty() && removals_.back().path.starts_with(beneath))
    removals_.pop_back();
  removals_.push_back({.path = difference.path(), .is_directory = is_directory});
}

std::set<std::string> SyncPlan::parents() const {
  std::set<std::string> parents;
  for (const Removal& each : removals_) {
    const size_t slash = each.path.rfind('/');
    if (slash == std::string::npos) continue;  // the directory itself keeps its own time
    std::string parent = each.path.substr(0, slash);
    if (!kept_.contains(parent)) parents.insert(std::move(parent));
  }
  return parents;
}

std::map<std::string, std::set<std::string>> SyncPlan::made_beside_removals() const {
  const auto parent = [](const std::string& path) {
    const size_t slash = path.rfind('/');
    return slash == std::string::npos ? std::string() : path.substr(0, slash);
  };
  std::set<std::string> removed_from;
  for (const Removal& each : removals_) removed_from.insert(parent(each.path));
  std::map<std::string, std::set<std::string>> made;
  for (const auto* names : {&files_, &directories_}) {
    for (const Name& each : *names) {
      const std::string in = parent(each.path);
      if (each.missing && removed_from.contains(in))
        made[in].insert(each.path.substr(each.path.rfind('/') + 1));
    }
  }
  return made;
}

std::vector<SyncPlan::List> SyncPlan::lists() const {
  const std::set<std::string> later = parents();
  std::vector<const Name*> names;
  names.reserve(files_.size() + directories_.size());
  for (const Name& each : files_) names.push_back(&each);
  std::for_each(directories_.rbegin(), directories_.rend(), [&](const Name& each) {
    if (!later.contains(each.path)) names.push_back(&each);
  });
  return cut(names);
}

std::vector<SyncPlan::List> SyncPlan::lists_after_removal() const {
  std::vector<Name> directories;
  for (const std::string& each : parents()) directories.push_back({.path = each});
  std::vector<const Name*> names;
  std::for_each(directories.rbegin(), directories.rend(), [&](const Name& each) { names.push_back(&each); });
  return cut(names);
}

SyncPlan::List SyncPlan::directories_after_removal() const {
  const std::set<std::string> later = parents();
  List names;
  std::for_each(directories_.rbegin(), directories_.rend(), [&](const Name& each) {
    if (later.contains(each.path)) names.push_back(each.path);
  });
  return names;
}

std::vector<SyncPlan::List> SyncPlan::cut(const std::vector<const Name*>& names) const {
  std::vector<List> lists;
  size_t bytes = 0;
  size_t large_files = 0;
  for (const Name* const name : names) {
    const bool full = lists.empty() || lists.back().size() >= limits_.names ||
                      bytes + name->path.size() > limits_.bytes ||
                      (name->large && large_files >= limits_.large_files);
    if (full) {
      lists.emplace_back();
      bytes = 0;
      large_files = 0;
    }
    bytes += name->path.size();
    large_files += name->large ? 1 : 0;
    lists.back().push_back(name->path);
  }
  return lists;
}

}  // namespace sluice::cli
