// SPDX-License-Identifier: Apache-2.0
#include "tools/gfal2/places/problem.h"

#include <cerrno>
#include <utility>

#include "dataplane/base/error.h"

namespace sluice::gfal {
namespace {

// Of files that cannot be read, and of disks (control/exports/beneath.cc, manage.cc, refusals.h).
constexpr std::pair<std::string_view, int> kReasons[] = {
    {"does not exist", ENOENT},
    {"not a directory", ENOTDIR},
    {"is a directory", EISDIR},
    {"is not empty", ENOTEMPTY},
    {"permission denied", EACCES},
    {"is too long", ENAMETOOLONG},
    {"is read-only", EROFS},
    {"is mounted there", EBUSY},
    {"such names are kept", EINVAL},
    {"on another file system", EXDEV},
    {"another transfer writes to", EBUSY},
    {"another session writes to", EBUSY},
};

int by_text(std::string_view message, int otherwise) {
  size_t last = 0;
  int reason = otherwise;
  for (const auto& [text, number] : kReasons) {
    const size_t at = message.rfind(text);
    if (at == std::string_view::npos || at < last) continue;
    last = at;
    reason = number;
  }
  return reason;
}

}  // namespace

int errno_of(int code, std::string_view message) {
  switch (static_cast<ErrorCode>(code)) {
    case ErrorCode::kUsage:
      return by_text(message, EINVAL);
    case ErrorCode::kConfiguration:
    case ErrorCode::kPeerUntrusted:
    case ErrorCode::kOutsideExports:
      return EACCES;
    case ErrorCode::kDaemonNotRunning:
      return ECONNREFUSED;
    case ErrorCode::kPeerUnreachable:
      return EHOSTUNREACH;
    case ErrorCode::kSourceUnreadable:
    case ErrorCode::kStorage:
      return by_text(message, EIO);
    case ErrorCode::kDestinationExists:
      return by_text(message, EEXIST);
    case ErrorCode::kNoSpace:
      return ENOSPC;
    case ErrorCode::kQuota:
      return EDQUOT;
    case ErrorCode::kCancelled:
      return ECANCELED;
    case ErrorCode::kDevice:
      return ENODEV;
    case ErrorCode::kStalled:
    case ErrorCode::kTooSlow:
    case ErrorCode::kDeadline:
    case ErrorCode::kLate:
      return ETIMEDOUT;
    case ErrorCode::kIncompatible:
      return EPROTO;
    case ErrorCode::kResources:
      return EAGAIN;
    case ErrorCode::kAttributes:
      return EOPNOTSUPP;
    default:
      return EIO;
  }
}

}  // namespace sluice::gfal
