// Small files of a plan: read whole, and written so that whoever reads one finds the old or the new one,
// whole.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "dataplane/base/error.h"

namespace sluice::fleet {

using Json = nlohmann::ordered_json;

// Of a file that cannot be `what` ("read", "written"): why is in errno.
Error cannot_be(const std::filesystem::path& path, const char* what);

// kConfiguration: it cannot be read, or is longer than 1 GiB.
Result<std::string> read_file(const std::filesystem::path& path);
// kConfiguration, too: it is no object of this schema.
Result<Json> read_json(const std::filesystem::path& path, std::string_view schema);

// With this mode, less the umask. Under another name first, synced, then renamed.
Status write_file(const std::filesystem::path& path, std::string_view text, uint32_t mode = 0666);
Status write_json(const std::filesystem::path& path, const Json& object);

}  // namespace sluice::fleet
