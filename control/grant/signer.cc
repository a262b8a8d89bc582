// SPDX-License-Identifier: Apache-2.0
#include "control/grant/signer.h"

#include <fmt/format.h>

#include "control/identity/certificate.h"
#include "control/identity/signature.h"

namespace sluice::grant {

Result<std::string> signer_of(const SignedText& shown, std::string_view what,
                              Error (*none)(std::string_view why)) {
  const Result<identity::CertificatePointer> certificate = identity::parse_certificate(shown.certificate_pem);
  if (!certificate) return none("without a certificate");
  Result<std::string> fingerprint = identity::fingerprint_of(certificate->get());
  if (!fingerprint) return none("without a key");
  if (const Status good = identity::check_signature(shown.certificate_pem, shown.text, shown.signature);
      !good)
    return Error{ErrorCode::kIntegrity,
                 fmt::format("{} is forged or damaged: {}", what, good.error().message)};
  return fingerprint;
}

}  // namespace sluice::grant
