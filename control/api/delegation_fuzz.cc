// Whatever a console says of whom it calls for: nothing is believed that its key did not sign, and of what it
// did sign only what is for this call and of this minute.
// SPDX-License-Identifier: Apache-2.0
#include "control/api/delegation.h"
#include "control/identity/certificate.h"
#include "control/identity/signature.h"
#include "dataplane/base/input_for_fuzz.h"

namespace {

// The library would report every malformed string.
[[maybe_unused]] const auto kQuietLibrary = google::protobuf::SetLogHandler(nullptr);

using namespace sluice;
using namespace sluice::service;

constexpr std::string_view kMethod = "Names/Remove";

struct Console {
  identity::KeyPair pair = *identity::make_key_pair({.name = "console"});
  identity::KeyPointer key = std::move(*identity::parse_key(pair.key_pem));
};

void check(const Result<api::Delegation>& heard, int64_t now_unix_ns) {
  if (!heard) {
    const Error& why = heard.error();
    fuzz::require(why.code == ErrorCode::kConfiguration && !why.message.empty(), "says why");
    fuzz::require(why.message.find('\n') == std::string::npos, "in one line");
    return;
  }
  fuzz::require(heard->method() == kMethod, "for this call");
  const __int128 age_ns = static_cast<__int128>(now_unix_ns) - heard->unix_ns();
  fuzz::require(age_ns <= kDelegationAgeMaxNs && age_ns >= -kDelegationAgeMaxNs, "of this minute");
}

// Fields as a console writes them, near the edges of what is believed.
std::string said(fuzz::Input& input, int64_t now_unix_ns) {
  api::Delegation delegation;
  delegation.set_method(input.flag() ? std::string(kMethod) : input.text(8));
  const auto unix_ns =
      input.flag() ? static_cast<uint64_t>(now_unix_ns) + input.edge() : input.take<uint64_t>();
  delegation.set_unix_ns(static_cast<int64_t>(unix_ns));
  delegation.set_uid(input.take<uint32_t>());
  delegation.set_role(static_cast<api::Delegation::Role>(input.below(8)));
  return delegation.SerializeAsString();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Console console;
  fuzz::Input input(data, size);
  const uint32_t form = input.below(3);
  const int64_t now_unix_ns = static_cast<int64_t>(input.edge());
  if (form == 0) {  // anybody, without the key
    const std::string signature = input.text(input.take<uint8_t>());
    const auto rest = input.rest();
    const std::string_view bytes(reinterpret_cast<const char*>(rest.data()), rest.size());
    const auto heard = check_delegation(console.pair.certificate_pem, bytes, signature, kMethod, now_unix_ns);
    fuzz::require(!heard, "the key did not sign it");
    check(heard, now_unix_ns);
    return 0;
  }
  const auto rest = form == 1 ? input.rest() : std::span<const uint8_t>();
  const std::string bytes = form == 1 ? std::string(rest.begin(), rest.end()) : said(input, now_unix_ns);
  auto signature = identity::sign_with(console.key.get(), std::string(kDelegationPurpose) + bytes);
  fuzz::require(static_cast<bool>(signature), "the key signs");
  const auto heard = check_delegation(console.pair.certificate_pem, bytes, *signature, kMethod, now_unix_ns);
  check(heard, now_unix_ns);
  api::Delegation same;
  if (same.ParseFromString(bytes) && same.method() == kMethod && same.unix_ns() == now_unix_ns)
    fuzz::require(static_cast<bool>(heard), "what is for this call and of now is believed");
  if (heard) {
    // Another purpose, another byte, another call: what was signed is for this one alone.
    const auto elsewhere = identity::sign_with(console.key.get(), bytes.front() == ' ' ? "x" + bytes : bytes);
    fuzz::require(
        elsewhere && !check_delegation(console.pair.certificate_pem, bytes, *elsewhere, kMethod, now_unix_ns),
        "what is signed says what it is");
    fuzz::require(
        !check_delegation(console.pair.certificate_pem, bytes + '\0', *signature, kMethod, now_unix_ns),
        "no byte more");
    fuzz::require(
        !check_delegation(console.pair.certificate_pem, bytes, *signature, "Names/List", now_unix_ns),
        "for no other call");
  }
  const Person person{.uid = 1, .name = "ada", .roles = {api::Delegation::USER}};
  if (heard) (void)check_role(person, heard->role());
  return 0;
}
