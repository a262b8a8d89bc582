// A receipt: what a node says of a session that has succeeded, signed with its key, for a third person. Of a
// partial one it says as well what is missing.
//
// One JSON object: "statement" is a text (JSON itself) whose very bytes were signed, so that nobody has to
// write JSON in one certain way to check it. docs/REFERENCE.md, "sluice receipt", tells how. It reads the
// files of the node's identity; any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "control/proto/api.pb.h"
#include "dataplane/base/error.h"

namespace sluice::receipt {

using Json = nlohmann::ordered_json;

inline constexpr std::string_view kSchema = "sluice.receipt.v1";
inline constexpr std::string_view kPurpose =
    "sluice receipt v1\n";  // before the statement, in what is signed

enum class Covers : uint8_t {
  kAll,      // only of a session of which all names have arrived
  kArrived,  // also of a partial one, if it names all that are missing: the receipt has them as "missing"
};
// kUsage: it has not succeeded. kConfiguration: a key is younger than the session, so that nobody can say
// that it was of this node, or of this peer.
Result<Json> make_receipt(const std::filesystem::path& node_directory, const api::Session& session,
                          Covers covers = Covers::kAll);

}  // namespace sluice::receipt
