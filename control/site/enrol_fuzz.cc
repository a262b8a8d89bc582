// Any bytes as what somebody hands to an enrolment: a token, a request, an answer, a pattern of names, or a
// file of addresses. Each is refused with one line, or says the same when it is written and read again.
// SPDX-License-Identifier: Apache-2.0
#include <google/protobuf/stubs/logging.h>

#include "control/identity/addresses.h"
#include "control/site/words.h"
#include "dataplane/base/config/config.h"
#include "dataplane/base/input_for_fuzz.h"

namespace {

using namespace sluice;

// The library would report every malformed string.
[[maybe_unused]] const auto kQuietLibrary = google::protobuf::SetLogHandler(nullptr);

void one_line(const Error& error) {
  fuzz::require(!error.message.empty() && error.message.find('\n') == std::string::npos, "one line says why");
}

void token(std::string_view text) {
  const auto parsed = site::parse_token(text);
  if (!parsed) {
    one_line(parsed.error());
    return;
  }
  const auto again = site::parse_token(site::to_text(*parsed));
  fuzz::require(again && again->seed == parsed->seed && again->authority == parsed->authority &&
                    again->address == parsed->address && again->name == parsed->name,
                "what was written is read");
  const auto key = site::public_key_of(*parsed);
  fuzz::require(key && site::valid_token_id(site::token_id(*key)), "it has an id");
}

void request(std::string_view bytes) {
  const auto parsed = site::decode_request(bytes);
  if (!parsed) {
    one_line(parsed.error());
    return;
  }
  fuzz::require(site::valid_token_id(parsed->token) && config::valid_node_name(parsed->name),
                "in its bounds");
  const std::string key(64, '3');
  fuzz::require(!site::wish_is_signed(key, {parsed->token, parsed->name, key, key}, parsed->signature),
                "nobody has signed it");
  const auto again = site::decode_request(site::encode(*parsed));
  fuzz::require(again && again->signature == parsed->signature, "what was written is read");
}

void reply(std::string_view bytes) {
  const auto parsed = site::decode_reply(bytes);
  if (!parsed) {
    fuzz::require(parsed.error().message.find('\n') == std::string::npos, "one line");
    return;
  }
  const auto again = site::decode_reply(site::encode(*parsed));
  fuzz::require(again && again->certificate_pem == parsed->certificate_pem && again->domain == parsed->domain,
                "what was written is read");
}

void addresses(std::string_view text) {
  const identity::Addresses parsed = identity::Addresses::parse(text, "addresses");
  for (const Error& problem : parsed.problems()) one_line(problem);
  for (const auto& [name, address] : parsed.all()) {
    fuzz::require(config::valid_node_name(name), "a name");
    const auto where = config::parse_host_port(address);
    fuzz::require(where && where->port != 0, "an address that can be called");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] & 3) {
    case 0:
      token(rest);
      break;
    case 1:
      request(rest);
      break;
    case 2:
      reply(rest);
      break;
    default:
      addresses(rest);
      fuzz::require(!site::valid_pattern(rest) || rest.size() <= 64, "a pattern in bounds");
  }
  return 0;
}
