// SPDX-License-Identifier: Apache-2.0
#include "control/catalog/attributes.h"

namespace sluice::catalog {
namespace {

constexpr uint32_t kNoAccount = UINT32_MAX;  // to chown(2): leave it as it is

bool good_account(const std::string& name) {
  return name.size() <= kAccountBytesMax && name.find('\0') == std::string::npos;
}

}  // namespace

std::string_view attributes_problem(const Attributes& attributes, const Keep& keep) {
  const bool named = !keep.numeric_ids;
  if ((attributes.uid || !attributes.user.empty()) && !keep.owner) return "an owner that was not agreed upon";
  if ((attributes.gid || !attributes.group.empty()) && !keep.group) return "a group that was not agreed upon";
  if (attributes.uid == kNoAccount || attributes.gid == kNoAccount) return "an owner or group that cannot be";
  if (!named && (!attributes.user.empty() || !attributes.group.empty()))
    return "the name of an owner or group where numbers were agreed upon";
  if (!good_account(attributes.user) || !good_account(attributes.group))
    return "the name of an owner or group that cannot be";
  return "";
}

}  // namespace sluice::catalog
