// What a session that the peer began, or a third node has ordered, or that is a user's, may take beneath the
// exports of this node.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "control/runtime/acts_for.h"
#include "control/runtime/transfer_files.h"
#include "dataplane/base/text.h"

namespace sluice::runtime {

namespace {

using Of = std::vector<exports::QuotaOf>;

// Of all paths, each export once.
Of of_all(const std::vector<std::string>& paths, const std::function<Of(const std::string&)>& of_path) {
  Of of;
  std::set<std::string> seen;
  for (const std::string& path : paths) {
    for (exports::QuotaOf& each : of_path(path)) {
      if (seen.insert(each.export_name).second) of.push_back(std::move(each));
    }
  }
  return of;
}

// Of this host: who asked for it here, or whom the map says that a peer's user is.
std::string user_of(const transfer::Job& job) {
  if (job.mapped) return job.mapped->user.name;
  return job.request && job.request->user ? job.request->user->name : std::string();
}

}  // namespace

// An operator of this node, who wrote the quotas, is not bound by them.
std::vector<TransferFiles::Bound> TransferFiles::bounds(const std::vector<std::string>& paths) const {
  std::vector<Bound> all;
  if (const std::string who = acts_for(transfer_); !who.empty())
    all.push_back(
        {"peer " + who, of_all(paths, [this](const auto& path) { return exports_->quotas(path); })});
  if (const std::string user = user_of(transfer_.job()); !user.empty())
    all.push_back({"user " + base::printable(user),
                   of_all(paths, [&](const auto& path) { return exports_->quotas_of_user(path, user); })});
  return all;
}

void TransferFiles::tell_ceiling(const std::vector<Bound>& bounds) const {
  Of of;
  for (const Bound& each : bounds) of.insert(of.end(), each.of.begin(), each.of.end());
  post(transfer::CeilingTold{ceiling_bps(of)});
}

Status TransferFiles::admit(const std::vector<std::string>& paths, const std::vector<catalog::File>& more) {
  const std::vector<Bound> all = bounds(paths);
  if (all.empty()) return {};
  Quotas::Taken taken;
  const auto add = [&taken](const catalog::File& file) {
    taken.bytes += file.size_bytes;
    taken.files += file.names();
  };
  if (const catalog::Catalog* const known = transfer_.job().catalog())
    std::ranges::for_each(known->files(), add);
  std::ranges::for_each(more, add);
  for (const Bound& each : all) {
    if (Status status = services_->quotas.admit(transfer_.id(), each.who, each.of, taken); !status)
      return status;
  }
  tell_ceiling(all);
  return {};
}

// What was found of a list.
Result<ListReader::Part> TransferFiles::admitted(const std::vector<std::string>& paths,
                                                 Result<ListReader::Part> part) {
  if (!part) return part;
  if (const Status status = admit(paths, part->found.files); !status) return status.error();
  return part;
}

void TransferFiles::rejoin() {
  const transfer::Job& job = transfer_.job();
  // What is sent from here was found before the session began.
  if (job.sources && job.request && !transfer_.ended()) {
    if (Status status = admit(job.request->source_paths, *job.sources); !status)
      post(transfer::Cancel{status.error()});
    return;
  }
  if (job.catalog() == nullptr || job.complete() || transfer_.ended()) return;
  std::vector<std::string> paths = job.asked.paths;
  for (const catalog::File& file : job.catalog()->files()) {
    if (!file.path.empty()) paths.push_back(file.path);
  }
  const std::vector<Bound> all = bounds(paths);
  if (all.empty()) return;
  for (const Bound& each : all) services_->quotas.enter(job.id, each.who, each.of);
  tell_ceiling(all);
}

}  // namespace sluice::runtime
