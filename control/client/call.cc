// SPDX-License-Identifier: Apache-2.0
#include "control/client/call.h"

#include <charconv>
#include <chrono>

#include "control/proto/error_metadata.h"

namespace sluice::api {
namespace {

constexpr int kErrorCodeMax = static_cast<int>(kErrorCodeLast);

std::optional<std::string> trailing(const grpc::ClientContext& context, const char* key) {
  const auto& metadata = context.GetServerTrailingMetadata();
  const auto found = metadata.find(key);
  if (found == metadata.end()) return std::nullopt;
  return std::string(found->second.data(), found->second.size());
}

Failure::Kind kind_of(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::CANCELLED:
      return Failure::Kind::kEnded;
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return Failure::Kind::kLate;
    case grpc::StatusCode::UNIMPLEMENTED:
      return Failure::Kind::kOtherVersion;
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return Failure::Kind::kExhausted;
    default:
      return Failure::Kind::kUnexpected;
  }
}

}  // namespace

Error error_of(const Failure& failure) {
  switch (failure.kind) {
    case Failure::Kind::kRefused:
      if (failure.code <= 0 || failure.code > kErrorCodeMax) return {ErrorCode::kInternal, failure.message};
      return {static_cast<ErrorCode>(failure.code), failure.message};
    case Failure::Kind::kStandsStill:
      return {ErrorCode::kDaemonNotRunning, Liveness::problem("")};
    case Failure::Kind::kEnded:
      return {ErrorCode::kDaemonNotRunning,
              "sluice-control ended the connection; see its log, and start it again if it is down"};
    case Failure::Kind::kLate:
      return {ErrorCode::kDaemonNotRunning,
              "sluice-control runs and did not answer within " + std::to_string(kCallS) +
                  " s: a disk or a peer may keep it waiting; see its log and 'sluice session list'"};
    case Failure::Kind::kOtherVersion:
      return {ErrorCode::kIncompatible,
              "sluice-control is of another version than this command; restart it after an upgrade"};
    case Failure::Kind::kExhausted:
      return {ErrorCode::kResources,
              "sluice-control lacks threads or memory (" + failure.message +
                  "): raise its limits (ulimit -u and -v; LimitNPROC, LimitAS), or end other processes of "
                  "its user"};
    case Failure::Kind::kUnexpected:
      break;
  }
  return {ErrorCode::kInternal, "unexpected answer of sluice-control: " + failure.message};
}

Call::Call(Control::Stub& control, std::optional<double> limit_s) : liveness_(control, context_) {
  if (!limit_s) return;
  const auto limit = std::chrono::duration_cast<std::chrono::system_clock::duration>(
      std::chrono::duration<double>(*limit_s));
  context_.set_deadline(std::chrono::system_clock::now() + limit);
}

Failure Call::failure_of(const grpc::Status& status) const {
  Failure failure{.kind = kind_of(status.error_code()), .message = status.error_message()};
  if (const auto code = trailing(context_, kErrorCodeKey)) {
    failure.kind = Failure::Kind::kRefused;
    std::from_chars(code->data(), code->data() + code->size(), failure.code);
    failure.name = trailing(context_, kErrorNameKey).value_or("");
  } else if (liveness_.stands_still()) {
    failure.kind = Failure::Kind::kStandsStill;
  }
  return failure;
}

}  // namespace sluice::api
