// SPDX-License-Identifier: Apache-2.0
#include "control/leg/job.h"

#include <fmt/format.h>

#include "dataplane/base/text.h"

namespace sluice::transfer {
namespace {

bool of_a_place(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUsage:
    case ErrorCode::kConfiguration:
    case ErrorCode::kSourceUnreadable:
    case ErrorCode::kOutsideExports:
    case ErrorCode::kNoSpace:
    case ErrorCode::kStorage:
    case ErrorCode::kAttributes:
      return true;
    default:
      return false;
  }
}

}  // namespace

Error Job::with_user(Error error, const std::string& peer) const {
  if (mapped && of_a_place(error.code))
    error.message += fmt::format("; {} is user {} at this node", peer_user_text(peer, mapped->peer_user),
                                 base::printable(mapped->user.name));
  return error;
}

}  // namespace sluice::transfer
