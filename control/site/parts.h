// What the parts of Site share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "control/identity/certificate.h"

namespace sluice::site {

std::string date_of(int64_t unix_s);
Error cannot(const std::filesystem::path& file, int error);  // what errno says of it
// Null: there is none, or it cannot be read.
identity::CertificatePointer read_certificate(const std::filesystem::path& file);

}  // namespace sluice::site
