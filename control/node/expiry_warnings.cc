// SPDX-License-Identifier: Apache-2.0
#include "control/node/expiry_warnings.h"

#include "dataplane/base/utc.h"

namespace sluice::node {
namespace {

constexpr int64_t kDayS = 86'400;
constexpr int64_t kSecondNs = 1'000'000'000;

}  // namespace

std::vector<std::string> ExpiryWarnings::due(const std::vector<identity::Expiry>& all, int64_t now_unix_s) {
  std::vector<std::string> lines;
  std::map<std::string, int64_t> told;
  for (const identity::Expiry& one : all) {
    if (one.unix_s == identity::kNoEnd || one.unix_s - now_unix_s > identity::kWarningS) continue;
    const std::string key = one.kind + " " + one.name;
    const auto before = told_unix_s_.find(key);
    const bool again = before == told_unix_s_.end() || now_unix_s - before->second >= kDayS;
    told[key] = again ? now_unix_s : before->second;
    if (!again) continue;
    const int64_t left_s = one.unix_s - now_unix_s;
    lines.push_back(identity::name_of(one) +
                    (left_s <= 0 ? " is out of date since "
                                 : " is out of date in " + std::to_string(left_s / kDayS) + " days, on ") +
                    base::utc_text(one.unix_s * kSecondNs));
  }
  told_unix_s_ = std::move(told);
  return lines;
}

}  // namespace sluice::node
