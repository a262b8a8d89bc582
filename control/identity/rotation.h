// The change of a node's key, in two steps, so that peers can learn the new one before it is used: begin()
// makes it and has the present key sign that it follows (successor.h); from then on this node shows it beside
// its certificate. finish() puts it in the present one's place.
//
// Each step leaves a node with one whole identity, wherever it is interrupted: a new file is complete before
// it gets a name, the next key is nothing before its certificate is there, and load() knows which certificate
// belongs to the key. Blocks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "control/identity/identity.h"

namespace sluice::identity {

std::filesystem::path next_certificate_file(const std::filesystem::path& node_directory);

struct RotationOptions {
  int64_t overlap_s = 0;   // so long, from now, both keys count at whoever took the new one
  int64_t lifetime_s = 0;  // of the new certificate; 0: no end
};
// kConfiguration: one is under way.
Result<Identity> begin_rotation(const std::filesystem::path& node_directory, const RotationOptions& options,
                                int64_t now_unix_s);
// kConfiguration: none is under way. `step` is called between what a crash may separate; for tests.
Result<Identity> finish_rotation(
    const std::filesystem::path& node_directory, const std::function<void()>& step = [] {});
// False: none was under way.
Result<bool> abandon_rotation(const std::filesystem::path& node_directory);
// Puts a certificate (and those between it and its authority) in the place of the present one, for the same
// key, or for `key_pem`, which takes the place of that.
Result<Identity> install(const std::filesystem::path& node_directory, const std::string& certificate_pem,
                         const std::string& key_pem);

// A certificate that is not to count any more, kept beneath `directory`/former as NAME.pem with the time at
// which it was written.
Status keep_former(const std::filesystem::path& directory, const std::string& name,
                   const std::filesystem::path& file);
// Those of this node, and of its peers; the oldest first.
struct Former {
  std::string name;  // of the peer; empty: this node's own
  std::string fingerprint;
  int64_t since_unix_ns = 0;
};
Result<std::vector<Former>> load_former(const std::filesystem::path& node_directory);

}  // namespace sluice::identity
