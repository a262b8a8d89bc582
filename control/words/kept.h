// Checks that both nodes keep the same attributes of each name. A node that is older than one of these
// options does not answer it.
//
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/selection/keep.h"
#include "dataplane/base/error.h"

namespace sluice::transfer {

// `said`: the bits of the peer's answer or offer.
inline Status check_kept(uint32_t said, const selection::Keep& wanted) {
  if (said == wanted.bits()) return {};
  if (wanted.anything() && (said & wanted.bits()) != wanted.bits())
    return Error{ErrorCode::kIncompatible,
                 "the peer does not keep what it was asked to of each name (--owner, --group, --numeric-ids, "
                 "--xattrs, "
                 "--acls): upgrade it, or leave them out"};
  return Error{ErrorCode::kIncompatible,
               "the peer keeps more of each name than it was asked to: run one version on both nodes"};
}

}  // namespace sluice::transfer
