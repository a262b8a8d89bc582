// Small files of a node directory: read whole, written so that after a crash either the old or the new
// content is there, on disk, with its mode from the first moment. Cold; any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "dataplane/base/error.h"

namespace sluice::identity {

inline Error configuration(std::string message) { return {ErrorCode::kConfiguration, std::move(message)}; }
inline Error untrusted(std::string reason) { return {ErrorCode::kPeerUntrusted, std::move(reason)}; }

// Whether the system lacks descriptors or memory just now: nothing is wrong with what was asked for.
bool is_shortage(int error_number);
Error shortage(const std::filesystem::path& file, int error_number);  // kResources

// At most 64 KiB; kConfiguration otherwise, or kResources. `not_found` is set when the file does not exist.
Result<std::string> read_small_file(const std::filesystem::path& file, bool* not_found = nullptr);
// Who besides its owner may not write it.
enum class Guard : bool { kOthers, kGroupAndOthers };
// kConfiguration, with the remedy. What is not there is not looked at.
Status check_guarded(const std::filesystem::path& file, Guard against);
// As read_small_file, of a file whose words are trusted: nobody but its owner may write it.
Result<std::string> read_guarded_file(const std::filesystem::path& file);
enum class Replace : bool { kNo, kYes };
// Through a temporary name, fsync, rename, fsync of the directory. With Replace::kNo an existing file is
// an error.
Status write_small_file(const std::filesystem::path& file, std::string_view text, mode_t mode,
                        Replace replace);
// False: there was none. Durable when it returns.
Result<bool> remove_small_file(const std::filesystem::path& file);
Status make_directory(const std::filesystem::path& directory, mode_t mode);

}  // namespace sluice::identity
