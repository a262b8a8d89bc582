// Which errors concern one file, so that all others go on, and as which Failure each is told.
//
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/catalog/entry.h"
#include "dataplane/base/error.h"

namespace sluice::transfer {

// Others are those of a node, a network or a session, and go on, wait or end as a whole.
inline bool concerns_one_file(ErrorCode code) {
  switch (code) {
    case ErrorCode::kSourceUnreadable:
    case ErrorCode::kOutsideExports:
    case ErrorCode::kDestinationExists:
    case ErrorCode::kNoSpace:
    case ErrorCode::kIntegrity:
    case ErrorCode::kStorage:
    case ErrorCode::kAttributes:
      return true;
    default:
      return false;
  }
}

// `known`: set if whoever met the error knows more of it than its code.
inline catalog::Failure failure_at_source(ErrorCode code, catalog::Failure known = catalog::Failure::kNone) {
  if (known != catalog::Failure::kNone) return known;
  if (code == ErrorCode::kIntegrity) return catalog::Failure::kChanged;
  return code == ErrorCode::kOutsideExports ? catalog::Failure::kForbidden : catalog::Failure::kUnreadable;
}

inline catalog::Failure failure_at_destination(ErrorCode code,
                                               catalog::Failure known = catalog::Failure::kNone) {
  if (known != catalog::Failure::kNone) return known;
  switch (code) {
    case ErrorCode::kNoSpace:
      return catalog::Failure::kNoSpace;
    case ErrorCode::kDestinationExists:
      return catalog::Failure::kExists;
    case ErrorCode::kOutsideExports:
      return catalog::Failure::kForbidden;
    case ErrorCode::kIntegrity:
      return catalog::Failure::kDamaged;
    case ErrorCode::kAttributes:
      return catalog::Failure::kAttributesRefused;
    default:
      return catalog::Failure::kUnwritable;
  }
}

}  // namespace sluice::transfer
