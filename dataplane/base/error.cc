// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/error.h"

namespace sluice {

std::string_view error_code_name(ErrorCode code) {
  switch (code) {
    case ErrorCode::kOk:
      return "ok";
    case ErrorCode::kInternal:
      return "internal";
    case ErrorCode::kUsage:
      return "usage";
    case ErrorCode::kConfiguration:
      return "configuration";
    case ErrorCode::kDaemonNotRunning:
      return "daemon_not_running";
    case ErrorCode::kPeerUntrusted:
      return "peer_untrusted";
    case ErrorCode::kPeerUnreachable:
      return "peer_unreachable";
    case ErrorCode::kSourceUnreadable:
      return "source_unreadable";
    case ErrorCode::kOutsideExports:
      return "outside_exports";
    case ErrorCode::kDestinationExists:
      return "destination_exists";
    case ErrorCode::kNoSpace:
      return "no_space";
    case ErrorCode::kIntegrity:
      return "integrity";
    case ErrorCode::kCancelled:
      return "cancelled";
    case ErrorCode::kDevice:
      return "device";
    case ErrorCode::kStalled:
      return "stalled";
    case ErrorCode::kIncompatible:
      return "incompatible";
    case ErrorCode::kStorage:
      return "storage";
    case ErrorCode::kResources:
      return "resources";
    case ErrorCode::kTooSlow:
      return "too_slow";
    case ErrorCode::kDeadline:
      return "deadline";
    case ErrorCode::kLate:
      return "late";
    case ErrorCode::kPartial:
      return "partial";
    case ErrorCode::kQuota:
      return "quota";
    case ErrorCode::kAttributes:
      return "attributes";
    case ErrorCode::kSuperseded:
      return "superseded";
    case ErrorCode::kMoved:
      return "moved";
  }
  return "unknown";
}

}  // namespace sluice
