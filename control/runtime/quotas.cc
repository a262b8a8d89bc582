// SPDX-License-Identifier: Apache-2.0
#include "control/runtime/quotas.h"

#include <fmt/format.h>

#include <algorithm>

#include "dataplane/base/check.h"
#include "dataplane/base/config/schema.h"

namespace sluice::runtime {

uint64_t Quotas::count(const std::string& session, const Place& place) const {
  return static_cast<uint64_t>(std::ranges::count_if(
      sessions_, [&](const auto& each) { return each.first != session && each.second.contains(place); }));
}

Error Quotas::over(const exports::QuotaOf& of, const std::string& who, const std::string& what) const {
  return {ErrorCode::kQuota,
          fmt::format("export {}: quota of {}: {}, or have [[export.quota]] raised in node.toml of "
                      "node {}",
                      of.export_name, who, what, node_name_)};
}

Status Quotas::admit(const std::string& session, const std::string& who,
                     const std::vector<exports::QuotaOf>& of, const Taken& taken) {
  for (const exports::QuotaOf& each : of) {
    const config::Quota& quota = each.quota;
    const uint64_t others = quota.sessions_max == 0 ? 0 : count(session, {who, each.export_name});
    if (quota.sessions_max != 0 && others >= quota.sessions_max)
      return over(each, who,
                  fmt::format("sessions_max = {}, and {} of its sessions have not ended there: wait for one, "
                              "cancel one",
                              quota.sessions_max, others));
    if (quota.session_bytes != 0 && taken.bytes > quota.session_bytes)
      return over(each, who,
                  fmt::format("session_bytes = {}, and the list of this session has come to {} bytes: take "
                              "less at a time",
                              config::format_size(quota.session_bytes), taken.bytes));
    if (quota.session_files != 0 && taken.files > quota.session_files)
      return over(each, who,
                  fmt::format("session_files = {}, and the list of this session has come to {} names: take "
                              "less at a time",
                              quota.session_files, taken.files));
  }
  enter(session, who, of);
  return {};
}

void Quotas::enter(const std::string& session, const std::string& who,
                   const std::vector<exports::QuotaOf>& of) {
  DCHECK(!who.empty(), "a quota is somebody's");
  std::set<Place>& places = sessions_[session];
  for (const exports::QuotaOf& each : of) {
    DCHECK(!each.export_name.empty(), "a quota is of an export");
    places.insert({who, each.export_name});
  }
}

uint64_t ceiling_bps(const std::vector<exports::QuotaOf>& of) {
  uint64_t least_bps = 0;
  for (const exports::QuotaOf& each : of) {
    const uint64_t rate_bps = each.quota.rate_bps;
    if (rate_bps != 0) least_bps = least_bps == 0 ? rate_bps : std::min(least_bps, rate_bps);
  }
  return least_bps;
}

}  // namespace sluice::runtime
