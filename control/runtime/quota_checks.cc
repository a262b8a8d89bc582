// What a session that the peer began, or a third node has ordered, may take beneath the exports of this node.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "control/runtime/acts_for.h"
#include "control/runtime/transfer_files.h"

namespace sluice::runtime {

std::vector<exports::QuotaOf> TransferFiles::quotas_of(const std::vector<std::string>& paths) const {
  std::vector<exports::QuotaOf> of;
  std::set<std::string> seen;
  for (const std::string& path : paths) {
    for (exports::QuotaOf& each : exports_->quotas(path)) {
      if (seen.insert(each.export_name).second) of.push_back(std::move(each));
    }
  }
  return of;
}

// An operator of this node, who wrote the quotas, is not bound by them.
Status TransferFiles::admit(const std::vector<std::string>& paths, const std::vector<catalog::File>& more) {
  const std::string who = acts_for(transfer_);
  if (who.empty()) return {};
  const std::vector<exports::QuotaOf> of = quotas_of(paths);
  Quotas::Taken taken;
  const auto add = [&taken](const catalog::File& file) {
    taken.bytes += file.size_bytes;
    taken.files += file.names();
  };
  if (const catalog::Catalog* const known = transfer_.job().catalog())
    std::ranges::for_each(known->files(), add);
  std::ranges::for_each(more, add);
  if (Status status = services_->quotas.admit(transfer_.id(), who, of, taken); !status) return status;
  post(transfer::CeilingTold{ceiling_bps(of)});
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
  const std::string who = acts_for(transfer_);
  if (who.empty() || job.catalog() == nullptr || job.complete() || transfer_.ended()) return;
  std::vector<std::string> paths = job.asked.paths;
  for (const catalog::File& file : job.catalog()->files()) {
    if (!file.path.empty()) paths.push_back(file.path);
  }
  const std::vector<exports::QuotaOf> of = quotas_of(paths);
  services_->quotas.enter(job.id, who, of);
  post(transfer::CeilingTold{ceiling_bps(of)});
}

}  // namespace sluice::runtime
