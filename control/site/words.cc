// SPDX-License-Identifier: Apache-2.0
#include "control/site/words.h"

#include "control/proto/enrol.pb.h"
#include "dataplane/base/config/config.h"
#include "dataplane/base/config/problems.h"
#include "dataplane/base/text.h"

namespace sluice::site {
namespace {

constexpr size_t kMessageBytesMax = 1024;

template <typename Message>
bool parse(std::string_view bytes, size_t most, Message* message) {
  return bytes.size() <= most && message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

}  // namespace

std::string encode(const Request& request) {
  enrol::wire::Request wire;
  wire.set_version(kEnrolVersion);
  wire.set_token(request.token);
  wire.set_name(request.name);
  wire.set_signature(request.signature);
  return wire.SerializeAsString();
}

Result<Request> decode_request(std::string_view bytes) {
  enrol::wire::Request wire;
  if (!parse(bytes, kRequestBytesMax, &wire)) return Error{ErrorCode::kUsage, "this is no request"};
  if (wire.version() != kEnrolVersion)
    return Error{ErrorCode::kIncompatible, "the authority's holder speaks version " +
                                               std::to_string(kEnrolVersion) +
                                               " of the enrolment; take a Sluice of the same release"};
  if (!valid_token_id(wire.token()) || !config::valid_node_name(wire.name()))
    return Error{ErrorCode::kUsage, "this is no request"};
  return Request{.token = wire.token(), .name = wire.name(), .signature = wire.signature()};
}

std::string encode(const Enrolled& enrolled) {
  enrol::wire::Reply wire;
  wire.set_version(kEnrolVersion);
  wire.set_certificate(enrolled.certificate_pem);
  wire.set_authority(enrolled.ca_pem);
  wire.set_revoked(enrolled.crl_pem);
  wire.set_domain(enrolled.domain);
  return wire.SerializeAsString();
}

std::string encode(const Error& refusal) {
  enrol::wire::Reply wire;
  wire.set_version(kEnrolVersion);
  wire.set_code(static_cast<uint32_t>(refusal.code));
  wire.set_message(refusal.message.substr(0, kMessageBytesMax));
  return wire.SerializeAsString();
}

Result<Enrolled> decode_reply(std::string_view bytes) {
  enrol::wire::Reply wire;
  const Error no_answer{ErrorCode::kIncompatible,
                        "the authority's holder answered with something else; take a Sluice of its release"};
  if (!parse(bytes, kReplyBytesMax, &wire) || wire.version() != kEnrolVersion) return no_answer;
  if (wire.code() != 0) {
    const bool known = wire.code() <= static_cast<uint32_t>(kErrorCodeLast);
    return Error{known ? static_cast<ErrorCode>(wire.code()) : ErrorCode::kPeerUntrusted,
                 base::printable(std::string_view(wire.message()).substr(0, kMessageBytesMax))};
  }
  if (wire.certificate().empty() || wire.authority().empty() ||
      !config::domain_problem(wire.domain()).empty())
    return no_answer;
  return Enrolled{.certificate_pem = wire.certificate(),
                  .ca_pem = wire.authority(),
                  .crl_pem = wire.revoked(),
                  .domain = wire.domain()};
}

}  // namespace sluice::site
