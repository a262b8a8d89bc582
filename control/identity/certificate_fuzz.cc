// Any text as a certificate or key that somebody hands to `sluice node trust`: refused with one line, or it
// has a fingerprint and survives being written and read again.
// SPDX-License-Identifier: Apache-2.0
#include "control/identity/certificate.h"
#include "control/identity/successor.h"
#include "dataplane/base/input_for_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sluice;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto key = identity::parse_key(text); !key)
    fuzz::require(!key.error().message.empty(), "says why");
  auto certificate = identity::parse_certificate(text);
  if (!certificate) {
    const std::string& why = certificate.error().message;
    fuzz::require(!why.empty() && why.find('\n') == std::string::npos, "one line says why");
    return 0;
  }
  const auto fingerprint = identity::fingerprint_of(certificate->get());
  (void)identity::common_name(certificate->get());
  (void)identity::subject_of(certificate->get());
  (void)identity::expires_unix_s(certificate->get());
  for (const std::string& name : identity::dns_names(certificate->get()))
    fuzz::require(name.size() <= size, "a name is a part of it");
  if (const auto statement = identity::statement_in(certificate->get())) {
    fuzz::require(statement->former_fingerprint.size() == 64 && statement->until_unix_s > 0, "well formed");
    fuzz::require(!identity::follows(certificate->get(), std::string(text)) ||
                      statement->former_fingerprint == *identity::fingerprint_of(certificate->get()),
                  "only the former key signs");
  }
  const auto pem = identity::to_pem(certificate->get());
  if (!fingerprint || !pem) return 0;
  fuzz::require(fingerprint->size() == 64, "SHA-256 in hex");
  auto again = identity::parse_certificate(*pem);
  fuzz::require(static_cast<bool>(again), "what was written is read");
  const auto same = identity::fingerprint_of(again->get());
  fuzz::require(same && *same == *fingerprint, "and is the same key");
  return 0;
}
