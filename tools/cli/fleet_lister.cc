// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/fleet_lister.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <ostream>

#include "tools/cli/format.h"
#include "tools/cli/names_format.h"
#include "tools/cli/target.h"

namespace sluice::cli {
namespace {

constexpr uint64_t kLinkedNamesMax = 20'000'000;  // some GiB of this command's memory
constexpr size_t kGroupNamesMax = 50'000;         // of one file, that travel in one session
constexpr size_t kProblemsToldMax = 100;

}  // namespace

Status FleetLister::list(const Canceller& canceller) {
  const auto node = client_.node();
  if (!node) return node.error();
  const auto own = [&node](const fleet::Place& place) { return place.node == node->name(); };
  // This node, where it is one of them.
  const auto nearest = [&own](const std::vector<fleet::Place>& places) {
    const auto found = std::ranges::find_if(places, own);
    return found == places.end() ? places.front() : *found;
  };
  const fleet::Place source = nearest(plan_.from);
  const fleet::Place destination = nearest(plan_.to);
  for (const fleet::Place& place : {source, destination}) {
    if (!own(place) && !api::knows_peer(*node, place.node))
      return Error{ErrorCode::kPeerUntrusted,
                   printable(place.node) + ": this node does not know it; see 'sluice node trust'"};
  }
  if (own(source) && own(destination))
    return usage(printable(source.node) + ": is both a node that has the dataset and one that gets it");
  if (!plan_.sync) return list_names(own(source) ? "" : source.node, source.path, canceller);
  api::CompareRequest asked;
  const bool backwards = own(destination);
  const fleet::Place& near = backwards ? destination : source;
  const fleet::Place& far = backwards ? source : destination;
  asked.set_from_peer(backwards);
  asked.set_own_path(near.path);
  if (!own(near)) asked.set_own_node(near.node);
  asked.set_peer(far.node);
  asked.set_peer_path(far.path);
  return compare(asked, own(source) ? source.path : "", canceller);
}

Status FleetLister::list_names(const std::string& node, const std::string& path, const Canceller& canceller) {
  api::ListNamesRequest asked;
  asked.set_peer(node);
  asked.set_path(path);
  asked.set_recursive(true);
  Status status = client_.list_names(asked, [&](const api::ListNamesReply& part) {
    for (const api::NameEntry& each : part.entries()) take(each, node.empty() ? path : "");
    return failure_ && !canceller.interrupted();
  });
  return end(std::move(status), canceller);
}

Status FleetLister::compare(const api::CompareRequest& asked, const std::string& own_source,
                            const Canceller& canceller) {
  Status status = client_.compare(asked, [&](const api::CompareReply& part) {
    for (const api::NameDifference& each : part.differences()) take(each, own_source);
    if (part.has_totals()) {
      plan_.left_out = part.totals().left_out();
      compared_ = part.totals();
    }
    return failure_ && !canceller.interrupted();
  });
  return end(std::move(status), canceller);
}

void FleetLister::take(const api::NameEntry& entry, const std::string& own) {
  if (entry.error_code() != 0) return problem(entry.path(), entry.error());
  switch (entry.type()) {
    case api::NameEntry::FILE:
      return take_file(entry, own);
    case api::NameEntry::LINK:
      return add(0, entry.path());
    case api::NameEntry::DIRECTORY:
      return directory(entry.path());
    default:
      ++plan_.left_out;
  }
}

void FleetLister::take(const api::NameDifference& difference, const std::string& own) {
  const bool missing = difference.kind() == api::NameDifference::MISSING ||
                       difference.kind() == api::NameDifference::DIFFERENT;
  if (difference.kind() == api::NameDifference::SOURCE_PROBLEM)
    return problem(difference.path(), difference.error());
  if (difference.kind() == api::NameDifference::DESTINATION_PROBLEM)
    return problem(difference.path(), "at the destination: " + difference.error());
  if (!missing) return;
  if (difference.type() == api::NameEntry::DIRECTORY) return directory(difference.path());
  api::NameEntry entry;
  entry.set_path(difference.path());
  entry.set_size(difference.type() == api::NameEntry::FILE ? difference.size() : 0);
  entry.set_links(own.empty() || difference.type() != api::NameEntry::FILE ? 1 : 2);  // looked at below
  take_file(entry, own);
}

// Names of one file stay together. This host can say which they are; of another node's those are taken for
// one file's that are equal in all that is known of them, as names of one file are.
void FleetLister::take_file(const api::NameEntry& entry, const std::string& own) {
  if (entry.links() < 2) return add(entry.size(), entry.path());
  FileKey key(entry.size(), static_cast<uint64_t>(entry.mtime_ns()), entry.links(), entry.mode());
  if (!own.empty()) {
    struct stat info {};
    if (::lstat(path_beneath(own, entry.path()).c_str(), &info) != 0 || info.st_nlink < 2)
      return add(entry.size(), entry.path());
    key = {entry.size(), info.st_dev, info.st_ino, 0};
  }
  linked_[key].push_back(entry.path());
  if (++linked_names_ > kLinkedNamesMax)
    failure_ =
        Error{ErrorCode::kResources,
              fmt::format("more than {} names of files that have several: plan parts of it by themselves",
                          kLinkedNamesMax)};
}

void FleetLister::add(uint64_t bytes, const std::string& name) {
  count(bytes, 1, name);
  files_.add(bytes, &name, 1);
}

void FleetLister::count(uint64_t bytes, uint64_t names, const std::string& first) {
  plan_.names += names;
  plan_.bytes += bytes;
  large_ += bytes > fleet::SessionLimits().large_file_bytes ? 1 : 0;
  if (bytes < plan_.largest_bytes || bytes == 0) return;
  plan_.largest_bytes = bytes;
  plan_.largest = escaped(first);
}

void FleetLister::directory(const std::string& name) {
  ++plan_.directories;
  if (Status status = last_.add(0, 0, {name}); !status) failure_ = status;
}

void FleetLister::problem(const std::string& path, const std::string& reason) {
  if (++plan_.problems > kProblemsToldMax) return;
  context_.environment.err << "sluice: " << escaped(path) << ": " << printable(reason) << "\n" << std::flush;
}

Status FleetLister::end(Status status, const Canceller& canceller) {
  if (!failure_) return failure_;
  if (!status) return status;
  if (canceller.interrupted()) return Error{ErrorCode::kCancelled, "interrupted while it listed the names"};
  for (const auto& [key, names] : linked_) {
    for (size_t from = 0; from < names.size(); from += kGroupNamesMax) {
      const size_t amount = std::min(kGroupNamesMax, names.size() - from);
      count(std::get<0>(key), amount, names[from]);
      files_.add(std::get<0>(key), &names[from], amount);
    }
  }
  return files_.finish();
}

}  // namespace sluice::cli
