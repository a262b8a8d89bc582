// What a newcomer and the holder of an authority say to each other, as bytes (docs/WIRE.md, "Enrolment").
//
// Pure. Whatever arrives is refused as a whole, or taken with each part in its bounds.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "control/site/site.h"
#include "dataplane/base/error.h"

namespace sluice::site {

inline constexpr uint32_t kEnrolVersion = 1;
inline constexpr uint32_t kRequestBytesMax = 1024;
inline constexpr uint32_t kReplyBytesMax = 256U << 10;
// Both ends of the TLS connection derive 32 bytes by this label (RFC 8446, 7.5), with no context.
inline constexpr std::string_view kBindingLabel = "EXPORTER-sluice-enrol-v1";
inline constexpr size_t kBindingBytes = 32;

struct Request {
  std::string token;  // its id
  std::string name;
  std::string signature;
};
std::string encode(const Request& request);
// kIncompatible: another version. kUsage: it is no request.
Result<Request> decode_request(std::string_view bytes);

std::string encode(const Enrolled& enrolled);
std::string encode(const Error& refusal);
// An error is what the authority answered, or that this is no answer (kIncompatible).
Result<Enrolled> decode_reply(std::string_view bytes);

}  // namespace sluice::site
