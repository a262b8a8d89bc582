// Roots, paths and sources. Destinations are in destination.cc.
// SPDX-License-Identifier: Apache-2.0
#include "control/exports/exports.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "control/exports/beneath.h"

namespace sluice::exports {
namespace {

int64_t mtime_ns_of(const struct stat& info) {
  return int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
}

// Why a file of this kind cannot be sent; empty for a regular file.
std::string_view kind_problem(mode_t mode) {
  if (S_ISREG(mode)) return "";
  if (S_ISDIR(mode)) return "is a directory; directories cannot be sent yet: name the files";
  if (S_ISLNK(mode)) return "is a symbolic link; name the file that it points to";
  return "is not a regular file but a device, a pipe or a socket; name a regular file";
}

}  // namespace

Result<Exports> Exports::open(const std::vector<config::Export>& exports) {
  Exports result;
  for (const config::Export& item : exports) {
    UniqueFd fd(::open(item.path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!fd)
      return Error{ErrorCode::kConfiguration,
                   "export " + item.name + ": " + item.path.string() + ": " + std::strerror(errno) +
                       "; create the directory, or correct [[export]] path in node.toml"};
    result.roots_.push_back({item, std::move(fd)});
  }
  return result;
}

Result<Exports::Location> Exports::locate(std::string_view path) const {
  const std::string shown = printable(path);
  auto parts = components(path);
  if (!parts)
    return Error{ErrorCode::kOutsideExports, shown + ": \"..\" is not allowed in a path; name it directly"};
  // "EXPORT/relative" becomes absolute first: of nested exports always the innermost one decides.
  if (!path.starts_with('/') && !parts->empty()) {
    for (const Root& root : roots_) {
      if (root.config.name != parts->front()) continue;
      auto absolute = components(root.config.path.string());
      if (!absolute) continue;
      absolute->insert(absolute->end(), parts->begin() + 1, parts->end());
      return locate("/" + join(*absolute, 0, absolute->size()));
    }
  }
  const Root* best = nullptr;
  size_t best_depth = 0;
  for (const Root& root : roots_) {
    const auto root_parts = components(root.config.path.string());
    if (!path.starts_with('/') || !root_parts || root_parts->size() > parts->size()) continue;
    if (!std::equal(root_parts->begin(), root_parts->end(), parts->begin())) continue;
    if (best != nullptr && root_parts->size() < best_depth) continue;
    best = &root;
    best_depth = root_parts->size();
  }
  if (best == nullptr) {
    std::string names;
    for (const Root& root : roots_) names += (names.empty() ? "" : ", ") + root.config.name;
    return Error{
        ErrorCode::kOutsideExports,
        shown + ": beneath no export; " +
            (names.empty() ? "add an [[export]] to node.toml"
                           : "write an absolute path beneath one, or EXPORT/path with one of: " + names)};
  }
  const std::string relative = join(*parts, best_depth, parts->size());
  return Location{best, relative.empty() ? "." : relative, printable("/" + join(*parts, 0, parts->size()))};
}

Result<SourceFile> Exports::open_source(std::string_view path) const {
  const auto location = locate(path);
  if (!location) return location.error();
  const std::string& shown = location->absolute;
  if (!location->root->config.read)
    return Error{ErrorCode::kOutsideExports, shown + ": export " + location->root->config.name +
                                                 " may only be written; set mode = \"rw\" in node.toml"};
  // First without opening it: opening a device or a pipe can have effects or hang.
  const int root_fd = location->root->fd.get();
  const UniqueFd probe = open_beneath(root_fd, location->relative, O_PATH | O_NOFOLLOW);
  struct stat info {};
  if (!probe || ::fstat(probe.get(), &info) != 0)
    return lookup_error(shown, errno, ErrorCode::kSourceUnreadable);
  if (const auto problem = kind_problem(info.st_mode); !problem.empty())
    return Error{S_ISLNK(info.st_mode) ? ErrorCode::kOutsideExports : ErrorCode::kSourceUnreadable,
                 shown + ": " + std::string(problem)};
  SourceFile file;
  file.fd = open_beneath(root_fd, location->relative, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
  if (!file.fd || ::fstat(file.fd.get(), &info) != 0)
    return lookup_error(shown, errno, ErrorCode::kSourceUnreadable);
  if (!S_ISREG(info.st_mode))
    return Error{ErrorCode::kSourceUnreadable, shown + ": was replaced while it was opened; try again"};
  file.direct = make_direct(file.fd.get());
  file.path = shown;
  file.name = location->relative.substr(location->relative.rfind('/') + 1);
  file.size = static_cast<uint64_t>(info.st_size);
  file.mode = info.st_mode & 0777;
  file.mtime_ns = mtime_ns_of(info);
  file.identity = {.device = info.st_dev, .inode = info.st_ino};
  return file;
}

Status Exports::check_unchanged(const SourceFile& file) {
  struct stat info {};
  if (::fstat(file.fd.get(), &info) != 0)
    return Error{ErrorCode::kStorage, file.path + ": " + std::strerror(errno) + "; check the file system"};
  if (static_cast<uint64_t>(info.st_size) == file.size && mtime_ns_of(info) == file.mtime_ns &&
      info.st_ino == file.identity.inode && info.st_dev == file.identity.device)
    return {};
  return Error{ErrorCode::kIntegrity,
               file.path + ": the source changed while it was sent; send it again when it is at rest"};
}

}  // namespace sluice::exports
