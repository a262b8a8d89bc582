// SPDX-License-Identifier: Apache-2.0
#include "control/api/delegation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "control/identity/signature.h"

namespace sluice::service {
namespace {

Error refused(const std::string& why) {
  return {ErrorCode::kConfiguration, "a call of the console is refused: " + why};
}

}  // namespace

Result<api::Delegation> check_delegation(std::string_view certificate_pem, std::string_view bytes,
                                         std::string_view signature, std::string_view method,
                                         int64_t now_unix_ns) {
  if (bytes.empty() || signature.empty()) return refused("it does not say for whom it is");
  const std::string text = std::string(kDelegationPurpose) + std::string(bytes);
  if (!identity::check_signature(certificate_pem, text, signature))
    return refused("its key did not sign it; run 'sluice console setup' and restart sluice-control");
  api::Delegation said;
  if (!said.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return refused("what it has signed is no delegation");
  if (said.method() != method)
    return refused(fmt::format("what it has signed is for another call than {}", method));
  const int64_t age_ns =
      static_cast<int64_t>(static_cast<uint64_t>(now_unix_ns) - static_cast<uint64_t>(said.unix_ns()));
  if (age_ns > kDelegationAgeMaxNs || age_ns < -kDelegationAgeMaxNs)
    return refused("what it has signed is older than a minute, or of a time to come");
  return said;
}

std::string_view role_name(api::Delegation::Role role) {
  switch (role) {
    case api::Delegation::VIEWER:
      return "viewer";
    case api::Delegation::USER:
      return "user";
    case api::Delegation::OPERATOR:
      return "operator";
    default:
      return "none";
  }
}

Status check_role(const Person& person, api::Delegation::Role role) {
  if (std::ranges::find(person.roles, role) != person.roles.end()) return {};
  return refused(
      fmt::format("user {} is no {} of this node; see [control] group, users_group and readers_group "
                  "in node.toml",
                  person.name, role_name(role)));
}

}  // namespace sluice::service
