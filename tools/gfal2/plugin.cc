// The plug-in that gfal2 loads: its calls for URLs sluice://NODE/EXPORT/PATH, each a call of the node here.
//
// Any thread. Nothing is kept between two calls but open directories, and no exception leaves. gfal2's
// credentials mean nothing here: who asks is the node, by its own key, for whoever may open its socket.
// SPDX-License-Identifier: Apache-2.0
#include <gfal_plugins_api.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include "dataplane/base/file_time.h"
#include "dataplane/base/path.h"
#include "dataplane/base/version.h"
#include "tools/gfal2/copy.h"
#include "tools/gfal2/node.h"
#include "tools/gfal2/places/place.h"
#include "tools/gfal2/places/problem.h"

namespace {

using namespace sluice;
using namespace sluice::gfal;

const char* name() { return GFAL2_PLUGIN_VERSIONED("sluice", SLUICE_VERSION); }

gfal2_context_t context_of(plugin_handle handle) { return static_cast<gfal2_context_t>(handle); }

// What `work` gives; or `otherwise`, and the error as gfal2 wants it.
template <typename Value, typename Work>
Value guarded(GError** error, const char* function, Value otherwise, const Work& work) {
  try {
    return work();
  } catch (const CopyProblem& problem) {
    const bool noted = *problem.note() != '\0';
    ::gfalt_set_error(error, quark(), problem.reason(), function, problem.side(),
                      noted ? problem.note() : nullptr, "%s", problem.what());
  } catch (const Problem& problem) {
    ::gfal2_set_error(error, quark(), problem.reason(), function, "%s", problem.what());
  } catch (const std::bad_alloc&) {
    ::gfal2_set_error(error, quark(), ENOMEM, function, "no memory for a call of a Sluice node");
  } catch (const std::exception& other) {
    ::gfal2_set_error(error, quark(), EIO, function, "unexpected: %s", other.what());
  } catch (...) {
    ::gfal2_set_error(error, quark(), EIO, function, "unexpected");
  }
  return otherwise;
}

template <typename Work>
int done(GError** error, const char* function, const Work& work) {
  return guarded(error, function, -1, [&work] {
    work();
    return 0;
  });
}

// ---- what it answers for -----------------------------------------------------------------------

gboolean check_url(plugin_handle /*handle*/, const char* url, plugin_mode mode, GError** /*error*/) {
  switch (mode) {
    case GFAL_PLUGIN_ACCESS:
    case GFAL_PLUGIN_CHMOD:
    case GFAL_PLUGIN_RENAME:
    case GFAL_PLUGIN_SYMLINK:
    case GFAL_PLUGIN_STAT:
    case GFAL_PLUGIN_LSTAT:
    case GFAL_PLUGIN_MKDIR:
    case GFAL_PLUGIN_MKDIR_REC:
    case GFAL_PLUGIN_RMDIR:
    case GFAL_PLUGIN_OPENDIR:
    case GFAL_PLUGIN_OPEN:
    case GFAL_PLUGIN_READLINK:
    case GFAL_PLUGIN_UNLINK:
    case GFAL_PLUGIN_CHECKSUM:
      return is_ours(url) ? TRUE : FALSE;
    default:
      return FALSE;
  }
}

gboolean check_transfer(plugin_handle /*handle*/, gfal2_context_t /*context*/, const char* source,
                        const char* destination, gfal_url2_check check) {
  const bool served = (is_ours(source) && (is_ours(destination) || is_file(destination))) ||
                      (is_file(source) && is_ours(destination));
  return check == GFAL_FILE_COPY && served ? TRUE : FALSE;
}

// ---- names -------------------------------------------------------------------------------------

mode_t type_bits(api::NameEntry::Type type) {
  switch (type) {
    case api::NameEntry::DIRECTORY:
      return S_IFDIR;
    case api::NameEntry::LINK:
      return S_IFLNK;
    case api::NameEntry::FIFO:
      return S_IFIFO;
    case api::NameEntry::SOCKET:
      return S_IFSOCK;
    case api::NameEntry::CHARACTER_DEVICE:
      return S_IFCHR;
    case api::NameEntry::BLOCK_DEVICE:
      return S_IFBLK;
    case api::NameEntry::FILE:
      return S_IFREG;
    default:
      return 0;
  }
}

void fill(const api::NameEntry& entry, struct stat* to) {
  constexpr blkcnt_t kBlockBytes = 512;  // of st_blocks
  std::memset(to, 0, sizeof *to);
  to->st_mode = type_bits(entry.type()) | entry.mode();
  to->st_size = static_cast<off_t>(entry.size());
  to->st_uid = entry.uid();
  to->st_gid = entry.gid();
  to->st_nlink = entry.links();
  to->st_blocks = static_cast<blkcnt_t>(entry.allocated_bytes()) / kBlockBytes;
  const base::FileTimeNs time = base::file_time_of(entry);
  to->st_mtim = {.tv_sec = static_cast<time_t>(base::whole_seconds(time)),
                 .tv_nsec = base::rest_of_second_ns(time)};
  to->st_ctim = to->st_atim = to->st_mtim;
}

int stat_url(plugin_handle handle, const char* url, struct stat* to, GError** error) {
  return done(error, __func__, [&] {
    const Place place = place_of(url);
    fill(Node(context_of(handle)).entry_of(place), to);
  });
}

// Whether it is there. What this node may do with it is known once it is done.
int access_url(plugin_handle handle, const char* url, int /*mode*/, GError** error) {
  return done(error, __func__, [&] {
    const Place place = place_of(url);
    (void)Node(context_of(handle)).entry_of(place);
  });
}

ssize_t readlink_url(plugin_handle handle, const char* url, char* to, size_t bytes, GError** error) {
  return guarded(error, __func__, ssize_t{-1}, [&]() -> ssize_t {
    const Place place = place_of(url);
    const api::NameEntry entry = Node(context_of(handle)).entry_of(place);
    if (entry.type() != api::NameEntry::LINK) throw Problem(EINVAL, place.shown() + ": is no symbolic link");
    const size_t length = std::min(bytes, entry.target().size());
    std::memcpy(to, entry.target().data(), length);
    if (length < bytes) to[length] = '\0';  // not all callers look at how long it is
    return static_cast<ssize_t>(length);
  });
}

int mkdir_url(plugin_handle handle, const char* url, mode_t /*mode*/, gboolean parents, GError** error) {
  return done(error, __func__, [&] {
    const Place place = place_of(url);
    Node(context_of(handle)).make_directory(place, parents != 0);
  });
}

int rename_url(plugin_handle handle, const char* from, const char* to, GError** error) {
  return done(error, __func__, [&] {
    const Place old_place = place_of(from);
    const Place new_place = place_of(to);
    Node(context_of(handle)).move(old_place, new_place);
  });
}

int unlink_url(plugin_handle handle, const char* url, GError** error) {
  return done(error, __func__, [&] {
    const Place place = place_of(url);
    Node(context_of(handle)).remove(place, false);
  });
}

int rmdir_url(plugin_handle handle, const char* url, GError** error) {
  return done(error, __func__, [&] {
    const Place place = place_of(url);
    Node(context_of(handle)).remove(place, true);
  });
}

int checksum_url(plugin_handle handle, const char* url, const char* type, char* to, size_t bytes,
                 off_t offset, size_t length, GError** error) {
  return done(error, __func__, [&] {
    if (offset != 0 || length != 0)
      throw Problem(ENOSYS, "a Sluice node computes checksums of whole files, and not of parts");
    const Place place = place_of(url);
    const std::string sum = Node(context_of(handle)).checksum_of(place, type);
    if (sum.size() >= bytes) throw Problem(ENOBUFS, "no room for the checksum " + sum);
    std::memcpy(to, sum.c_str(), sum.size() + 1);
  });
}

// ---- lists -------------------------------------------------------------------------------------

struct Directory {
  Directory(gfal2_context_t context, const Place& place)
      : node(context), list(node, node.peer_of(place), place) {}

  Node node;
  Node::List list;
  std::optional<api::NameEntry> first;
  struct dirent entry {};
};

gfal_file_handle opendir_url(plugin_handle handle, const char* url, GError** error) {
  return guarded(error, __func__, gfal_file_handle{}, [&] {
    const Place place = place_of(url);
    auto directory = std::make_unique<Directory>(context_of(handle), place);
    // Of what is no directory the list is of itself, without a name.
    directory->first = directory->list.next();
    if (directory->first && directory->first->path().empty())
      throw Problem(ENOTDIR, place.shown() + ": is not a directory");
    gfal_file_handle opened = ::gfal_file_handle_new(name(), directory.get());
    if (opened == nullptr) throw std::bad_alloc();
    (void)directory.release();
    return opened;
  });
}

// Names with bytes that no URL has stand as escapes: behind the directory's URL each means this very file.
struct dirent* next_of(gfal_file_handle opened, struct stat* info) {
  auto* const directory = static_cast<Directory*>(::gfal_file_handle_get_fdesc(opened));
  if (Alive::cut_off())
    throw Problem(ENOTSUP, "the directory was opened before this process was forked; open it again");
  std::optional<api::NameEntry> entry = std::exchange(directory->first, std::nullopt);
  if (!entry) entry = directory->list.next();
  if (!entry) return nullptr;
  struct dirent& told = directory->entry;
  std::memset(&told, 0, sizeof told);
  const std::string shown = escaped(entry->path());
  if (shown.size() >= sizeof told.d_name)
    throw Problem(ENAMETOOLONG,
                  shown + ": with its escapes the name has more than 255 bytes; gfal2 has no room for it");
  std::memcpy(told.d_name, shown.c_str(), shown.size() + 1);
  told.d_reclen = sizeof told;
  told.d_type = IFTODT(type_bits(entry->type()));
  if (info != nullptr) fill(*entry, info);
  return &told;
}

struct dirent* readdir_url(plugin_handle /*handle*/, gfal_file_handle opened, GError** error) {
  return guarded(error, __func__, static_cast<struct dirent*>(nullptr),
                 [&] { return next_of(opened, nullptr); });
}

struct dirent* readdirpp_url(plugin_handle /*handle*/, gfal_file_handle opened, struct stat* info,
                             GError** error) {
  return guarded(error, __func__, static_cast<struct dirent*>(nullptr),
                 [&] { return next_of(opened, info); });
}

int closedir_url(plugin_handle /*handle*/, gfal_file_handle opened, GError** error) {
  return done(error, __func__, [&] {
    std::unique_ptr<Directory> directory(static_cast<Directory*>(::gfal_file_handle_get_fdesc(opened)));
    if (Alive::cut_off()) (void)directory.release();
    ::gfal_file_handle_delete(opened);
  });
}

// ---- what Sluice has not -----------------------------------------------------------------------

gfal_file_handle open_url(plugin_handle /*handle*/, const char* /*url*/, int /*flag*/, mode_t /*mode*/,
                          GError** error) {
  return guarded(error, __func__, gfal_file_handle{}, []() -> gfal_file_handle {
    throw Problem(ENOSYS, "Sluice moves whole files and opens none; copy it");
  });
}

int chmod_url(plugin_handle /*handle*/, const char* /*url*/, mode_t /*mode*/, GError** error) {
  return done(error, __func__, [] { throw Problem(ENOSYS, "Sluice changes no modes at other nodes"); });
}

int symlink_url(plugin_handle /*handle*/, const char* /*old_url*/, const char* /*new_url*/, GError** error) {
  return done(error, __func__,
              [] { throw Problem(ENOSYS, "Sluice makes no symbolic links at other nodes"); });
}

// ---- copies ------------------------------------------------------------------------------------

int copy_url(plugin_handle /*handle*/, gfal2_context_t context, gfalt_params_t params, const char* source,
             const char* destination, GError** error) {
  return done(error, __func__, [&] { copy_file(context, params, source, destination); });
}

}  // namespace

extern "C" __attribute__((visibility("default"))) gfal_plugin_interface gfal_plugin_init(
    gfal2_context_t context, GError** /*error*/) {
  gfal_plugin_interface calls;
  std::memset(&calls, 0, sizeof calls);
  calls.plugin_data = context;
  calls.priority = GFAL_PLUGIN_PRIORITY_DATA;
  calls.getName = name;
  calls.check_plugin_url = check_url;
  calls.check_plugin_url_transfer = check_transfer;
  calls.accessG = access_url;
  calls.statG = stat_url;
  calls.lstatG = stat_url;
  calls.readlinkG = readlink_url;
  calls.mkdirpG = mkdir_url;
  calls.renameG = rename_url;
  calls.unlinkG = unlink_url;
  calls.rmdirG = rmdir_url;
  calls.checksum_calcG = checksum_url;
  calls.opendirG = opendir_url;
  calls.readdirG = readdir_url;
  calls.readdirppG = readdirpp_url;
  calls.closedirG = closedir_url;
  calls.openG = open_url;
  calls.chmodG = chmod_url;
  calls.symlinkG = symlink_url;
  calls.copy_file = copy_url;
  return calls;
}
