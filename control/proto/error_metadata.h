// How an Error travels over the local API: the gRPC status carries the message and the nearest gRPC
// code; two trailing metadata entries carry the exact sluice::ErrorCode, as a decimal number and by
// name, so that a client can act (and exit) on it in any language.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace sluice::api {

inline constexpr char kErrorCodeKey[] = "sluice-error-code";
inline constexpr char kErrorNameKey[] = "sluice-error-name";

}  // namespace sluice::api
