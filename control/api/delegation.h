// Whom a console calls for: read from the metadata of its call, and believed because its key has signed it.
//
// Pure but for the check of the signature. Any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "control/proto/console.pb.h"
#include "dataplane/base/error.h"

namespace sluice::service {

inline constexpr char kDelegationKey[] = "sluice-delegation-bin";
inline constexpr char kDelegationSignatureKey[] = "sluice-delegation-signature";
inline constexpr std::string_view kDelegationPurpose = "sluice console delegation v1\n";
inline constexpr int64_t kDelegationAgeMaxNs = 60'000'000'000;

// `bytes` and `signature` as they came. kConfiguration: not signed by the key of this certificate, for
// another call than `method`, or of another time.
Result<api::Delegation> check_delegation(std::string_view certificate_pem, std::string_view bytes,
                                         std::string_view signature, std::string_view method,
                                         int64_t now_unix_ns);

// A person of this host, and what the node's configuration makes of them.
struct Person {
  uint32_t uid = 0;
  std::string name;
  std::vector<api::Delegation::Role> roles;  // the least first; none: a stranger
};

// kConfiguration: the person has not got this role.
Status check_role(const Person& person, api::Delegation::Role role);
std::string_view role_name(api::Delegation::Role role);

}  // namespace sluice::service
