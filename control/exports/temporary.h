// The name under which a destination's bytes lie until they are complete, and the file behind it.
//
// The lock (flock) belongs to the open file, so it lasts as long as any process holds the descriptor, and
// ends with a crash. A temporary file that nobody holds is a leftover and is replaced.
//
// Cold; blocking; any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "control/catalog/entry.h"
#include "control/exports/reserved.h"
#include "dataplane/base/error.h"
#include "dataplane/base/unique_fd.h"

namespace sluice::exports {

inline constexpr std::string_view kTemporarySuffix = ".sluice-part";

std::string temporary_name(const std::string& name);
// Of a name that is longer, the end gives way to a sum of it.
std::string shortened_name(const std::string& name, size_t most);
// The same for a file in this directory. Where that would be too long for its file system the end of `name`
// gives way to a sum of it.
std::string temporary_name_in(int directory_fd, const std::string& name);
// Bytes of the longest name that a file can have there, 255 at most.
size_t name_bytes_max(int directory_fd);
// Also in the spellings that a file system without cases takes for the same name.
bool is_temporary_name(std::string_view name);
// A file that was removed while a client of NFS had it open: the client, or its server, keeps it under a name
// of this form until it is closed.
bool is_silly_name(std::string_view name);
// Neither kind is a file of its own: trees and lists leave it out.
inline bool is_passing_name(std::string_view name) { return is_temporary_name(name) || is_silly_name(name); }
// Is a part of the path that of a temporary file?
bool leads_through_temporary(std::string_view path);

// Empty, locked, and certainly the one that has this name. kDestinationExists: another transfer writes it, or
// has let go of it for a while (`reserved`).
Result<UniqueFd> create_temporary(int directory_fd, const std::string& name, const std::string& path,
                                  const Reserved& reserved, catalog::Failure* why);

// Removes a temporary file that nobody holds. kDestinationExists: a transfer writes it, or has let go of it
// for a while, or it is none.
Status remove_leftover(int directory_fd, const std::string& name, const std::string& path,
                       const Reserved& reserved);

// Does `name` in the directory still mean the open file?
bool still_named(int directory_fd, const std::string& name, int fd);

// Another transfer holds this file.
Error cannot_remove(const std::string& path, int reason);
Error busy(const std::string& temporary_path);

}  // namespace sluice::exports
