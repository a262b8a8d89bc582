// SPDX-License-Identifier: Apache-2.0
#include "control/api/bridge.h"

#include "control/proto/error_metadata.h"

namespace sluice::service {
namespace {

grpc::StatusCode grpc_code(ErrorCode code) {
  switch (code) {
    case ErrorCode::kOk:
      return grpc::StatusCode::OK;
    case ErrorCode::kUsage:
      return grpc::StatusCode::INVALID_ARGUMENT;
    case ErrorCode::kConfiguration:
    case ErrorCode::kDevice:
    case ErrorCode::kIncompatible:
    case ErrorCode::kDeadline:
      return grpc::StatusCode::FAILED_PRECONDITION;
    case ErrorCode::kDaemonNotRunning:
    case ErrorCode::kPeerUnreachable:
      return grpc::StatusCode::UNAVAILABLE;
    case ErrorCode::kPeerUntrusted:
    case ErrorCode::kOutsideExports:
      return grpc::StatusCode::PERMISSION_DENIED;
    case ErrorCode::kSourceUnreadable:
      return grpc::StatusCode::NOT_FOUND;
    case ErrorCode::kDestinationExists:
      return grpc::StatusCode::ALREADY_EXISTS;
    case ErrorCode::kNoSpace:
    case ErrorCode::kResources:
    case ErrorCode::kQuota:
      return grpc::StatusCode::RESOURCE_EXHAUSTED;
    case ErrorCode::kIntegrity:
      return grpc::StatusCode::DATA_LOSS;
    case ErrorCode::kPartial:
    case ErrorCode::kAttributes:
    case ErrorCode::kSuperseded:
    case ErrorCode::kMoved:
      return grpc::StatusCode::ABORTED;
    case ErrorCode::kCancelled:
      return grpc::StatusCode::CANCELLED;
    case ErrorCode::kStalled:
    case ErrorCode::kTooSlow:
    case ErrorCode::kLate:
      return grpc::StatusCode::DEADLINE_EXCEEDED;
    case ErrorCode::kInternal:
    case ErrorCode::kStorage:
      return grpc::StatusCode::INTERNAL;
  }
  return grpc::StatusCode::UNKNOWN;
}

}  // namespace

grpc::Status to_grpc(grpc::ServerContext* context, const Error& error) {
  context->AddTrailingMetadata(api::kErrorCodeKey, std::to_string(static_cast<int>(error.code)));
  context->AddTrailingMetadata(api::kErrorNameKey, std::string(error_code_name(error.code)));
  return {grpc_code(error.code), error.message};
}

}  // namespace sluice::service
