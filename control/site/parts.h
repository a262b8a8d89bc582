// What the parts of Site share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "control/identity/certificate.h"
#include "control/site/site.h"

namespace sluice::site {

std::string date_of(int64_t unix_s);
Error cannot(const std::filesystem::path& file, int error);  // what errno says of it
// By whom and when, of a token in this directory; what cannot be read stays "?".
void read_use(const std::filesystem::path& token_directory, TokenUse& use);
// Its files that end in .pem; none where there is no such directory.
Result<std::vector<std::filesystem::path>> certificates_in(const std::filesystem::path& directory);
// Null: there is none, or it cannot be read.
identity::CertificatePointer read_certificate(const std::filesystem::path& file);

}  // namespace sluice::site
