// Roots, paths and sources. Destinations are in destination.cc and naming.cc, directories in trees.cc.
// SPDX-License-Identifier: Apache-2.0
#include "control/exports/exports.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "control/exports/beneath.h"
#include "control/exports/file_state.h"
#include "control/exports/reserved.h"
#include "control/exports/temporary.h"
#include "dataplane/base/check.h"

namespace sluice::exports {
namespace {

// Why a file of this kind cannot be sent; empty for a regular file.
std::string_view kind_problem(mode_t mode) {
  if (S_ISREG(mode)) return "";
  if (S_ISDIR(mode)) return "is a directory; name a file";
  if (S_ISLNK(mode)) return "is a symbolic link; name the file that it points to";
  return "is not a regular file but a device, a pipe or a socket; name a regular file";
}

}  // namespace

Exports::Root Exports::root_at(const config::Export& config) {
  UniqueFd fd(::open(config.path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  struct stat info {};
  const int reason = fd && stat_without_asking(fd.get(), &info) ? 0 : errno;
  return {.config = config,
          .fd = std::make_shared<const UniqueFd>(std::move(fd)),
          .open = reason == 0,
          .unreachable = reason,
          .device = info.st_dev,
          .inode = info.st_ino};
}

Result<Exports> Exports::open(const std::vector<config::Export>& exports) {
  Exports result;
  result.reserved_ = std::make_shared<Reserved>();
  for (const config::Export& item : exports) {
    Root root = root_at(item);
    if (root.unreachable != 0)
      return Error{ErrorCode::kConfiguration,
                   "export " + item.name + ": " + item.path.string() + ": " +
                       std::strerror(root.unreachable) +
                       "; create the directory, or correct [[export]] path in node.toml"};
    result.roots_.push_back(std::move(root));
  }
  return result;
}

Exports Exports::open_reachable(const std::vector<config::Export>& exports) {
  Exports result;
  result.reserved_ = std::make_shared<Reserved>();
  for (const config::Export& item : exports) result.roots_.push_back(root_at(item));
  return result;
}

size_t Exports::note_opened_in(const std::filesystem::path& file) {
  writable_ = std::make_shared<WritableDirectories>(file);
  return writable_->give_back();
}

Exports Exports::for_peer(std::string_view peer) const {
  DCHECK(reserved_, "exports were opened");
  Exports result = *this;
  result.peer_ = peer;
  result.given_ = std::make_shared<Given>();
  for (Root& root : result.roots_) {
    root.config = root.config.for_peer(peer);
    root.open = root.unreachable == 0 && (root.config.read || root.config.write || root.config.manage);
  }
  return result;
}

Exports Exports::for_operator() const {
  Exports result = *this;
  for (Root& root : result.roots_) {
    root.config.owners = root.config.acls = true;
    root.config.manage = root.config.manage || root.config.write;
  }
  result.of_operator_ = true;
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
  if (best != nullptr && best->unreachable != 0)
    return lookup_error(shown, best->unreachable, ErrorCode::kSourceUnreadable);
  // What is not open to a peer is to it as if it were not there.
  if (best == nullptr || !best->open) {
    std::string names;
    for (const Root& root : roots_) {
      if (root.open) names += (names.empty() ? "" : ", ") + root.config.name;
    }
    return Error{
        ErrorCode::kOutsideExports,
        shown + ": beneath no export" + (peer_.empty() ? "" : " that is open to peer " + peer_) + "; " +
            (names.empty() ? "add an [[export]] to node.toml"
                           : "write an absolute path beneath one, or EXPORT/path with one of: " + names)};
  }
  DCHECK(best->fd && *best->fd, "a root that is open has its descriptor");
  DCHECK(best_depth <= parts->size(), "a root is above what lies in it");
  const std::string relative = join(*parts, best_depth, parts->size());
  return Location{best, relative.empty() ? "." : relative, printable("/" + join(*parts, 0, parts->size()))};
}

// The descriptor of a root goes on to mean the directory of the start, whatever its path means by now.
Status Exports::check_in_place(const Root& root) {
  const Result<bool> there = leads_to(root.config.path, ".", root.fd->get());
  if (!there) return there.error();
  if (*there) return {};
  return Error{
      ErrorCode::kStorage,
      "export " + root.config.name + ": " + root.config.path.string() +
          " is not the directory that it was when sluice-control started (renamed, replaced, or something "
          "mounted over it): put it back, or restart sluice-control"};
}

Exports Exports::anywhere() const {
  config::Export all;
  all.name = "outside the exports";
  all.path = "/";
  all.read = all.write = true;
  Exports result = *this;
  result.roots_ = {root_at(all)};
  return result;
}

Status Exports::check_within(std::string_view path) const {
  const auto location = locate(path);
  return location ? Status() : Status(location.error());
}

std::string Exports::export_of(std::string_view path) const {
  const auto location = locate(path);
  return location ? location->root->config.name : "";
}

std::optional<uint64_t> Exports::device_of(std::string_view path) const {
  const auto location = locate(path);
  if (!location) return std::nullopt;
  const size_t slash = location->relative.rfind('/');
  const std::string directory = slash == std::string::npos ? "." : location->relative.substr(0, slash);
  const UniqueFd there = open_beneath(location->root->fd->get(), directory, O_PATH | O_DIRECTORY);
  const std::optional<FileState> state = there ? state_of(there.get()) : std::nullopt;
  return state ? std::optional(state->identity.device) : std::nullopt;
}

Result<Exports::Location> Exports::locate_readable(std::string_view path) const {
  auto location = locate(path);
  if (!location) return location.error();
  if (!location->root->config.read)
    return Error{ErrorCode::kOutsideExports, location->absolute + ": export " + location->root->config.name +
                                                 " may only be written; set mode = \"rw\" in node.toml"};
  if (Status status = check_in_place(*location->root); !status) return status.error();
  return location;
}

Result<SourceFile> Exports::open_source(std::string_view path, catalog::Failure* why) const {
  const auto location = locate_readable(path);
  if (!location) return location.error();
  if (is_temporary_name(last_component(location->relative)))
    return lookup_error(location->absolute, ENOENT, ErrorCode::kSourceUnreadable);
  return user_ ? open_for_user(*location, false, why) : open_regular(*location, why);
}

Result<SourceFile> Exports::open_unfinished(const std::string& name_path) const {
  const std::string name = last_component(name_path);
  const std::string before = name_path.substr(0, name_path.size() - name.size());
  const auto directory = locate_readable(user_ ? name_path : before);
  if (!directory) return directory.error();
  if (user_) return open_for_user(*directory, true);
  const UniqueFd at = open_beneath(directory->root->fd->get(), directory->relative, O_PATH | O_DIRECTORY);
  if (!at) return lookup_error(directory->absolute, errno, ErrorCode::kSourceUnreadable);
  const auto location = locate_readable(before + temporary_name_in(at.get(), name));
  if (!location) return location.error();
  return open_regular(*location);
}

Result<SourceFile> Exports::open_regular(const Location& location, catalog::Failure* why) {
  // First without opening it: opening a device or a pipe can have effects or hang.
  const std::string& shown = location.absolute;
  const int root_fd = location.root->fd->get();
  const UniqueFd probe = open_beneath(root_fd, location.relative, O_PATH | O_NOFOLLOW);
  struct stat info {};
  if (!probe || ::fstat(probe.get(), &info) != 0)
    return lookup_error(shown, errno, ErrorCode::kSourceUnreadable);
  if (const auto problem = kind_problem(info.st_mode); !problem.empty())
    return Error{S_ISLNK(info.st_mode) ? ErrorCode::kOutsideExports : ErrorCode::kSourceUnreadable,
                 shown + ": " + std::string(problem)};
  return as_source(
      location, open_beneath(root_fd, location.relative, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW), why);
}

bool Exports::make_direct_at(const std::string& name_path, int fd) const {
  const auto location = locate(name_path);
  return make_direct(fd, location && location->root->config.direct);
}

// `fd` invalid: errno tells.
Result<SourceFile> Exports::as_source(const Location& location, UniqueFd fd, catalog::Failure* why) {
  const std::string& shown = location.absolute;
  SourceFile file;
  file.fd = std::move(fd);
  const std::optional<FileState> state = file.fd ? state_of(file.fd.get()) : std::nullopt;
  if (!state) return lookup_error(shown, errno, ErrorCode::kSourceUnreadable);
  if (!S_ISREG(state->mode))
    return Error{ErrorCode::kSourceUnreadable, shown + ": was replaced while it was opened; try again"};
  struct stat info {};
  if (::fstat(file.fd.get(), &info) == 0 && !tells_its_size(file.fd.get(), info)) {
    if (why != nullptr) *why = catalog::Failure::kTellsNoSize;
    return tells_no_size(shown);
  }
  file.direct = make_direct(file.fd.get(), location.root->config.direct);
  file.path = shown;
  file.name = last_component(location.relative);
  file.size = state->size_bytes;
  file.mode = state->mode & 0777;
  file.uid = state->uid;
  file.gid = state->gid;
  file.mtime_ns = state->mtime_ns;
  file.ctime_ns = state->ctime_ns;
  file.may_be_changing = may_be_changing(file.fd.get(), *state);
  file.identity = state->identity;
  return file;
}

Result<int64_t> Exports::check_unchanged(const SourceFile& file) {
  const std::optional<FileState> now = state_of(file.fd.get(), true);
  if (!now) return storage_error(file.path, errno);
  if (now->size_bytes == file.size && now->mtime_ns == file.mtime_ns) return now->ctime_ns;
  return Error{ErrorCode::kIntegrity,
               file.path + ": the source changed while it was sent; send it again when it is at rest"};
}

}  // namespace sluice::exports
