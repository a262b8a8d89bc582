// SPDX-License-Identifier: Apache-2.0
#include "control/exports/listing.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>

#include "control/exports/beneath.h"
#include "control/exports/file_state.h"
#include "control/exports/read_back.h"
#include "control/exports/temporary.h"
#include "control/exports/times.h"
#include "dataplane/base/check.h"
#include "dataplane/base/text.h"

namespace sluice::exports {
namespace {

// Whoever looks on sees something.
constexpr auto kPageTime = std::chrono::milliseconds(250);
constexpr uint64_t kDiskBlockBytes = 512;  // of st_blocks

names::Type type_of(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG:
      return names::Type::kFile;
    case S_IFDIR:
      return names::Type::kDirectory;
    case S_IFLNK:
      return names::Type::kLink;
    case S_IFIFO:
      return names::Type::kFifo;
    case S_IFSOCK:
      return names::Type::kSocket;
    case S_IFCHR:
      return names::Type::kCharacterDevice;
    case S_IFBLK:
      return names::Type::kBlockDevice;
    default:
      return names::Type::kUnknown;
  }
}

void set_error(names::Entry& entry, const Error& error) {
  entry.error_code = static_cast<uint32_t>(error.code);
  entry.error = base::printable(error.message, names::kTextBytesMax);
}

void describe(names::Entry& entry, const struct stat& info) {
  entry.type = type_of(info.st_mode);
  const bool sized = S_ISREG(info.st_mode) || S_ISLNK(info.st_mode);
  entry.size_bytes = sized ? static_cast<uint64_t>(info.st_size) : 0;
  entry.mode = info.st_mode & 07777;
  entry.mtime_ns = ns_of(info.st_mtim);
  entry.uid = info.st_uid;
  entry.gid = info.st_gid;
  entry.links = info.st_nlink;
  entry.allocated_bytes = static_cast<uint64_t>(info.st_blocks) * kDiskBlockBytes;
}

// The text of a link; `name` empty: of the descriptor itself.
void read_target(int directory_fd, const char* name, const std::string& shown, names::Entry& entry) {
  std::array<char, names::kPathBytesMax> text;
  const ssize_t bytes = ::readlinkat(directory_fd, name, text.data(), text.size());
  if (bytes >= 0) {
    entry.target.assign(text.data(), static_cast<size_t>(bytes));
  } else {
    set_error(entry, lookup_error(shown, errno, ErrorCode::kSourceUnreadable));
  }
}

// Why a directory was not gone into.
Error enter_error(const std::string& shown, int reason) {
  if (reason == ELOOP)
    return {ErrorCode::kSourceUnreadable,
            shown + ": is a directory that it lies in itself (a bind mount); it is not listed again"};
  if (reason == ENAMETOOLONG)
    return {ErrorCode::kSourceUnreadable, shown + ": lies too deep; list it by its own path"};
  return lookup_error(shown, reason, ErrorCode::kSourceUnreadable);
}

std::string joined(const std::string& directory, const std::string& path) {
  return (directory == "/" ? "" : directory) + "/" + path;
}

// May it not be listed? What files hold is told only to those that may have it.
bool is_closed(const config::Export& config, Asker asker, bool digests) {
  return asker == Asker::kPeer && !config.read && (digests || !config.manage);
}

Result<uint64_t> digest_of(int fd, names::DigestKind kind, uint64_t bytes, Pulse& pulse) {
  const ReadProgress progress = [&pulse](uint64_t) { return pulse.step(); };
  switch (kind) {
    case names::DigestKind::kAdler32:
      return read_adler32(fd, bytes, progress);
    case names::DigestKind::kCrc32c:
      return read_crc(fd, wire::CrcKind::kCrc32c, 0, bytes, progress);
    case names::DigestKind::kCrc64:
      break;
  }
  return read_crc(fd, wire::CrcKind::kCrc64Ecma, 0, bytes, progress);
}

// Of the file that `entry` describes; an error in the entry where it cannot be read.
void read_digest(int directory_fd, const char* name, const std::string& shown, names::DigestKind kind,
                 Pulse& pulse, names::Entry& entry) {
  const UniqueFd fd(::openat(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0)
    return set_error(entry, lookup_error(shown, errno, ErrorCode::kSourceUnreadable));
  if (!S_ISREG(info.st_mode))
    return set_error(entry, {ErrorCode::kSourceUnreadable, shown + ": was replaced while it was looked at"});
  describe(entry, info);
  if (!tells_its_size(fd.get(), info)) return set_error(entry, tells_no_size(shown));
  const Result<uint64_t> digest = digest_of(fd.get(), kind, entry.size_bytes, pulse);
  if (!digest) return set_error(entry, {ErrorCode::kSourceUnreadable, shown + ": " + digest.error().message});
  entry.digest = *digest;
  entry.digest_kind = kind;
}

}  // namespace

Listing::Listing(const Exports& exports, const names::List& asked, Pulse& pulse, Asker asker)
    : exports_(exports), asked_(asked), asker_(asker), pulse_(pulse) {}

Status Listing::open(UniqueFd directory, const std::string& absolute) {
  absolute_ = absolute;
  walk_.emplace(std::move(directory), Walk::Mounts::kCross, pulse_);
  const int problem = walk_->begin();
  if (problem == 0) return {};
  if (problem == ECANCELED) return Error{ErrorCode::kCancelled, "the list was stopped"};
  return lookup_error(printable(absolute), problem, ErrorCode::kSourceUnreadable);
}

void Listing::put(names::Entry entry) {
  DCHECK(!over_, "a list that is over tells no more");
  ++entries_;
  failed_ += entry.error_code != 0 ? 1 : 0;
  page_bytes_ += names::page_bytes(entry);
  page_.entries.push_back(std::move(entry));
}

std::string Listing::shown() const {
  DCHECK(walk_, "a directory is walked through");
  return printable(joined(absolute_, walk_->path()));
}

bool Listing::wanted(const std::string& name) const {
  if (!asked_.unfinished && is_passing_name(name)) return false;
  const size_t depth = walk_->depth();
  return depth >= pattern_.parts.size() || names::matches(pattern_.parts[depth], name);
}

// Is what is in a directory at this depth asked for?
bool Listing::goes_deeper() const { return asked_.recursive || walk_->depth() + 1 < pattern_.parts.size(); }

void Listing::look_at_name() {
  Walk& walk = *walk_;
  if (!wanted(walk.name())) return;
  const bool told = walk.depth() + 1 >= pattern_.parts.size();  // or only on the way to what is
  names::Entry entry{.path = walk.path()};
  struct stat info {};
  if (::fstatat(walk.fd(), walk.name().c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return;  // it was there a moment ago
    set_error(entry, lookup_error(shown(), errno, ErrorCode::kSourceUnreadable));
    return put(std::move(entry));
  }
  describe(entry, info);
  if (S_ISLNK(info.st_mode)) read_target(walk.fd(), walk.name().c_str(), shown(), entry);
  if (asked_.digests && told && S_ISREG(info.st_mode) && !is_passing_name(walk.name()))
    read_digest(walk.fd(), walk.name().c_str(), shown(), asked_.digest_kind, pulse_, entry);
  if (S_ISDIR(info.st_mode) && goes_deeper()) {
    const Exports::Root* root = exports_.root_of(joined(absolute_, walk.path()));
    const bool closed = root != nullptr && is_closed(root->config, asker_, asked_.digests);
    if (closed) {
      set_error(entry, {ErrorCode::kOutsideExports,
                        shown() + (root->open ? ": export " + root->config.name +
                                                    " may not be listed; add r to its mode"
                                              : ": is of an export that is not open to this peer")});
    } else if (const int problem = walk.enter(); problem != 0 && problem != ENOENT && problem != ECANCELED) {
      set_error(entry, enter_error(shown(), problem));
    }
  }
  if (told || entry.error_code != 0) put(std::move(entry));
}

Status Listing::step(Walk::Step step) {
  if (step == Walk::Step::kName) look_at_name();
  if (step == Walk::Step::kEnd) over_ = true;
  if (step != Walk::Step::kFailed) return {};
  if (errno == ECANCELED) return Error{ErrorCode::kCancelled, "the list was stopped"};
  // Some of its names were told already: an entry of its own would not be in order.
  return lookup_error(printable(joined(absolute_, walk_->directory())), errno, ErrorCode::kStorage);
}

Result<names::Page> Listing::next() {
  DCHECK(over_ || walk_, "a list was begun");
  const auto begin = std::chrono::steady_clock::now();
  while (!over_ && page_.entries.size() < names::kEntriesPerPage && page_bytes_ < names::kPageBytes) {
    if (!pulse_.step()) return Error{ErrorCode::kCancelled, "the list was stopped"};
    if (const Status status = step(walk_->next()); !status) return status.error();
    const bool any = !page_.entries.empty();
    if (any && std::chrono::steady_clock::now() - begin >= kPageTime) break;
  }
  DCHECK(over_ || !page_.entries.empty(), "a list that goes on has something to tell");
  page_bytes_ = 0;
  names::Page page = std::exchange(page_, {});
  if (page.entries.empty() && asked_.glob && entries_ == 0)
    return Error{ErrorCode::kSourceUnreadable, printable(asked_.path) + ": nothing fits; check the pattern"};
  return page;
}

// ---- where a list begins -------------------------------------------------------------------------

Result<Exports::Location> Exports::locate_listable(std::string_view path, Asker asker, bool digests) const {
  auto location = locate(path);
  if (!location) return location.error();
  if (is_closed(location->root->config, asker, digests))
    return Error{ErrorCode::kOutsideExports, location->absolute + ": export " + location->root->config.name +
                                                 " may not be listed; add r to its mode in node.toml"};
  if (Status status = check_in_place(*location->root); !status) return status.error();
  return location;
}

Result<std::unique_ptr<Listing>> Exports::list(const names::List& asked, Pulse& pulse, Asker asker) const {
  if (user_) return not_as_user(asked.path, "it is to be listed");
  std::unique_ptr<Listing> listing(new Listing(*this, asked, pulse, asker));
  if (asked.path.empty()) {
    list_roots(*listing);
    return listing;
  }
  std::string path = asked.path;
  if (asked.glob && asked.itself)
    return Error{ErrorCode::kUsage, printable(asked.path) + ": a pattern is no name; leave out one of both"};
  if (asked.glob) {
    listing->pattern_ = names::split_pattern(asked.path);
    path = listing->pattern_.base;
    if (path.empty() || listing->pattern_.parts.empty())
      return Error{ErrorCode::kUsage, printable(asked.path) + ": name an export before the first wildcard"};
  }
  const auto location = locate_listable(path, asker, asked.digests);
  if (!location) return location.error();
  const std::string& name = location->relative;
  const bool hidden = is_temporary_name(last_component(name)) && !asked.unfinished;
  const UniqueFd probe =
      hidden ? UniqueFd() : open_beneath(location->root->fd->get(), name, O_PATH | O_NOFOLLOW);
  struct stat info {};
  if (hidden) errno = ENOENT;
  if (!probe || ::fstat(probe.get(), &info) != 0)
    return lookup_error(location->absolute, errno, ErrorCode::kSourceUnreadable);
  const bool directory = S_ISDIR(info.st_mode);
  if (!directory && (asked.glob || asked.path.ends_with('/')))
    return lookup_error(location->absolute, ENOTDIR, ErrorCode::kSourceUnreadable);
  if (!directory || asked.itself) {
    names::Entry entry;
    describe(entry, info);
    if (S_ISLNK(info.st_mode)) read_target(probe.get(), "", location->absolute, entry);
    if (asked.digests && S_ISREG(info.st_mode) && !is_temporary_name(last_component(name))) {
      const UniqueFd above = open_beneath(location->root->fd->get(), parent_of(name), O_RDONLY | O_DIRECTORY);
      read_digest(above.get(), last_component(name).c_str(), location->absolute, asked.digest_kind, pulse,
                  entry);
    }
    listing->put(std::move(entry));
    listing->over_ = true;
    return listing;
  }
  UniqueFd fd = open_beneath(location->root->fd->get(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!fd) return lookup_error(location->absolute, errno, ErrorCode::kSourceUnreadable);
  if (const Status status = listing->open(std::move(fd), location->path()); !status) return status.error();
  return listing;
}

void Exports::list_roots(Listing& listing) const {
  std::vector<const Root*> roots;
  for (const Root& root : roots_) {
    if (root.open) roots.push_back(&root);
  }
  std::ranges::sort(roots, {}, [](const Root* root) { return root->config.name; });
  for (const Root* root : roots) {
    names::Entry entry{.path = root->config.name};
    struct stat info {};
    if (stat_without_asking(root->fd->get(), &info)) describe(entry, info);
    listing.put(std::move(entry));
  }
  listing.over_ = true;
}

std::string Exports::Location::path() const {
  const std::string top = root->config.path.string();
  if (relative == ".") return top;
  return joined(top, relative);
}

const Exports::Root* Exports::root_of(const std::string& absolute) const {
  for (const Root& root : roots_) {
    if (root.config.path == absolute) return &root;
  }
  return nullptr;
}

const Exports::Root* Exports::root_of(dev_t device, ino_t inode) const {
  for (const Root& root : roots_) {
    if (root.unreachable == 0 && root.device == device && root.inode == inode) return &root;
  }
  return nullptr;
}

}  // namespace sluice::exports
