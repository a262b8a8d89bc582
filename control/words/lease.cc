// SPDX-License-Identifier: Apache-2.0
#include "control/words/lease.h"

#include <fmt/format.h>

#include <charconv>

#include "dataplane/base/text.h"

namespace sluice::transfer {
namespace {

constexpr size_t kShownBytes = 6;  // of a name: ten bytes of it stay secret at least

bool possible_in_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
         c == '-';
}

}  // namespace

Status check_lease(const Lease& lease) {
  if (lease.name.size() < kLeaseNameBytesMin || lease.name.size() > kLeaseNameBytesMax)
    return Error{
        ErrorCode::kUsage,
        fmt::format("a lease's name has {} characters: {} to {} are possible, and whoever knows it may "
                    "take the lease, so make it of 'openssl rand -hex 16'",
                    lease.name.size(), kLeaseNameBytesMin, kLeaseNameBytesMax)};
  for (const char c : lease.name) {
    if (!possible_in_name(c))
      return Error{
          ErrorCode::kUsage,
          fmt::format("a lease's name has {:?} in it: letters, digits, '.', '_' and '-' are possible",
                      base::printable(std::string(1, c)))};
  }
  if (lease.epoch == 0 || lease.epoch > kLeaseEpochMax)
    return Error{ErrorCode::kUsage,
                 fmt::format("epoch {} of a lease: 1 to {} are possible", lease.epoch, kLeaseEpochMax)};
  return {};
}

Result<Lease> parse_lease(std::string_view text) {
  const size_t colon = text.rfind(':');
  const std::string_view digits = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  Lease lease{.name = std::string(text.substr(0, colon))};
  const char* const end = digits.data() + digits.size();
  const auto [at, problem] = std::from_chars(digits.data(), end, lease.epoch);
  if (digits.empty() || problem != std::errc() || at != end)
    return Error{ErrorCode::kUsage,
                 fmt::format("lease \"{}\": write NAME:EPOCH, with a whole number from 1 on as the epoch",
                             base::printable(text.substr(0, kShownBytes)))};
  if (const Status status = check_lease(lease); !status) return status.error();
  return lease;
}

std::string shown_lease(const Lease& lease) {
  return fmt::format("{}...:{}", base::printable(lease.name.substr(0, kShownBytes)), lease.epoch);
}

}  // namespace sluice::transfer
