// Names beneath a directory's descriptor, and what the system's refusals mean. Cold; any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/error.h"
#include "dataplane/base/text.h"
#include "dataplane/base/unique_fd.h"

namespace sluice::exports {

// openat2 with RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS; on failure errno tells.
// `resolve`: further RESOLVE_ flags.
UniqueFd open_beneath(int directory_fd, const std::string& relative, uint64_t flags, mode_t mode = 0,
                      uint64_t resolve = 0);

// Renames a name of one open directory to one of another. Without `replace` whatever has the new name stays,
// and errno is EEXIST, also where the file system cannot promise that by itself.
bool rename_between(int from_fd, const std::string& from, int to_fd, const std::string& to, bool replace);
// That of a directory, for such a file system (NFS): an empty directory takes the new name, which fails where
// something has it, and nothing but an empty directory can be replaced then.
bool give_directory(int from_fd, const std::string& from, int to_fd, const std::string& to);

// Does the path, from the export's own path on, still lead to the open directory? Something may have been
// renamed, replaced, or mounted over it. An error: that cannot be told now.
Result<bool> leads_to(const std::string& root_path, const std::string& relative, int directory_fd);
// What an open file is called now, as far as the system tells: for messages.
std::string path_now(int fd);

// Components of a path without "." and empty ones; nothing when it has "..", or a NUL byte.
std::optional<std::vector<std::string>> components(std::string_view path);
std::string join(const std::vector<std::string>& parts, size_t from, size_t to);

// "a/b/c": "c". What stands behind the last slash, if there is one.
std::string last_component(const std::string& path);
// "a/b/c": "a/b", and of "c" the directory at hand, ".".
std::string parent_of(const std::string& relative);

// What a directory holds, but for "." and "..", sorted. Nothing: errno tells.
std::optional<std::vector<std::string>> names_in(int directory_fd);

// True for a name that a file can get: one component, not "." or "..".
bool valid_file_name(std::string_view name);

// fstat as the kernel knows it: a file system that does not answer is not asked.
bool stat_without_asking(int fd, struct stat* info);

// Sets O_DIRECT if it is wanted and the file system takes it, and says whether it is set. Clears O_NONBLOCK:
// an io_uring request on a non-blocking descriptor may fail with EAGAIN instead of waiting.
bool make_direct(int fd, bool wanted);

// kOutsideExports for links and escapes, otherwise `otherwise`; from errno.
Error lookup_error(const std::string& path, int reason, ErrorCode otherwise);

// kStorage: what is wrong with the disk, from errno.
Error storage_error(const std::string& path, int reason);

using base::printable;  // names come from peers
// "1.5 GiB", for people.
std::string human_bytes(uint64_t bytes);

}  // namespace sluice::exports
