// SPDX-License-Identifier: Apache-2.0
#include "control/gather/packs.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <deque>

#include "control/exports/as_user.h"
#include "control/exports/beneath.h"
#include "control/exports/file_state.h"
#include "control/exports/temporary.h"
#include "control/exports/times.h"
#include "control/tree/pack.h"
#include "dataplane/base/check.h"
#include "dataplane/base/progress.h"
#include "dataplane/crc/crc.h"

namespace sluice::gather {
namespace {

using catalog::Entry;
using catalog::EntryKind;
using catalog::Failure;

constexpr size_t kSessionDigits = 8;

bool as_listed(const struct stat& info, const Entry& entry) {
  return S_ISREG(info.st_mode) && static_cast<uint64_t>(info.st_size) == entry.size_bytes &&
         exports::ns_of(info.st_mtim) == entry.mtime_ns &&
         exports::clock_ns_of(info.st_ctim) == entry.ctime_ns;
}

// A file as it was listed, of which the disk has been asked for.
struct AskedFor {
  UniqueFd fd;
  Failure failure = Failure::kNone;
};

// So many files ahead: a disk that is asked for one after the other rests in between. No more than 16 packs
// are filled at a time, which needs half of the 1024 descriptors that any process has, and control asks for
// more (dataplane/base/open_files.h).
constexpr size_t kAskedForAhead = 32;

AskedFor ask_for(int tree_fd, const std::string& path, const Entry& entry) {
  AskedFor file{.fd = exports::open_beneath(tree_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)};
  struct stat info {};
  if (!file.fd || ::fstat(file.fd.get(), &info) != 0)
    return {.fd = {}, .failure = exports::read_failure(errno)};
  if (!as_listed(info, entry)) return {.fd = {}, .failure = Failure::kChanged};
  if (!exports::tells_its_size(file.fd.get(), info)) return {.fd = {}, .failure = Failure::kTellsNoSize};
  // A file system that cannot do so reads it when it is read.
  ::posix_fadvise(file.fd.get(), 0, static_cast<off_t>(entry.size_bytes), POSIX_FADV_WILLNEED);
  return file;
}

// `place` is as long as the file was when it was listed.
Failure read_file(const AskedFor& file, const Entry& entry, std::span<uint8_t> place) {
  if (file.failure != Failure::kNone) return file.failure;
  size_t at = 0;
  while (at < place.size()) {
    const ssize_t got = ::pread(file.fd.get(), place.data() + at, place.size() - at, static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Failure::kUnreadable;
    if (got == 0) return Failure::kChanged;
    at += static_cast<size_t>(got);
  }
  struct stat info {};
  if (::fstat(file.fd.get(), &info) != 0) return Failure::kUnreadable;
  return as_listed(info, entry) ? Failure::kNone : Failure::kChanged;
}

Error no_memory(int reason) {
  return {ErrorCode::kResources,
          fmt::format("no memory for a pack of small files: {}; free some", std::strerror(reason))};
}

Error no_pack() { return {ErrorCode::kResources, "what was handed over as the memory of a pack is none"}; }

// Whether that is memory of so many bytes which nobody can make shorter.
bool is_pack(int fd, uint64_t bytes) {
  struct stat info {};
  const int seals = fd < 0 ? -1 : ::fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && ::fstat(fd, &info) == 0 &&
         static_cast<uint64_t>(info.st_size) == bytes;
}

Result<std::span<uint8_t>> map(int fd, uint64_t bytes, int rights = PROT_READ | PROT_WRITE) {
  void* const at = ::mmap(nullptr, bytes, rights, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return no_memory(errno);
  return std::span(static_cast<uint8_t*>(at), bytes);
}

// Names arrive under that of the tree; there they are looked up in it.
std::string path_in(const exports::SourceTree& tree, const Entry& entry) {
  const size_t before = tree.name.empty() ? 0 : tree.name.size() + 1;
  return entry.path.size() > before ? entry.path.substr(before) : entry.path;
}

bool is_to_be_read(const Entry& entry) {
  return entry.kind == EntryKind::kFile && entry.failure == Failure::kNone;
}

// One behind the other into `data`; each with what it sums to, or why it could not be read.
void read_files(const exports::SourceTree& tree, std::span<Entry> entries, std::span<uint8_t> data) {
  std::deque<AskedFor> ahead;
  size_t asked = 0;
  for (Entry& entry : entries) {
    base::note_progress();
    for (; asked < entries.size() && ahead.size() < kAskedForAhead; ++asked) {
      const Entry& next = entries[asked];
      ahead.push_back(is_to_be_read(next) ? ask_for(tree.fd.get(), path_in(tree, next), next) : AskedFor());
    }
    DCHECK(!ahead.empty() && entry.size_bytes <= data.size(), "the layout has room for every file");
    const AskedFor file = std::move(ahead.front());
    ahead.pop_front();
    const std::span<uint8_t> place = data.first(entry.size_bytes);
    data = data.subspan(entry.size_bytes);
    if (!is_to_be_read(entry)) continue;
    entry.failure = read_file(file, entry, place);
    if (entry.failure == Failure::kNone)
      entry.digest = crc::compute(wire::CrcKind::kCrc64Ecma, 0, place.data(), place.size());
  }
}

// Not what it was when it was listed: why.
Failure look_at(const exports::SourceTree& tree, const Entry& entry) {
  if (entry.failure != Failure::kNone || entry.kind != EntryKind::kFile) return entry.failure;
  const UniqueFd fd = exports::open_beneath(tree.fd.get(), path_in(tree, entry), O_PATH | O_NOFOLLOW);
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0) return exports::read_failure(errno);
  return as_listed(info, entry) ? Failure::kNone : Failure::kChanged;
}

// What comes is judged here; the process of the user has what is then left to do.
Result<std::shared_ptr<exports::Unpacking>> stage_for_user(
    const exports::Exports& exports, exports::UserTrees& trees, const catalog::File& pack,
    const PackMemory& memory, const std::string& staging, const catalog::AskedNames* asked,
    const digests::Expected* expected) {
  exports::UserTrees::Pack wanted{.file = pack, .staging = staging, .expected = {}, .memory_fd = memory.fd()};
  if (asked != nullptr || expected != nullptr) {
    const Result<tree::Index> index = tree::read_index(memory.bytes());
    if (!index) return index.error();
    if (Status status = exports::check_wanted(*index, asked, pack.keep, pack.pack.members); !status)
      return status.error();
    for (const Entry& entry : index->entries) {
      const auto listed =
          expected == nullptr ? digests::Expected::const_iterator() : expected->find(entry.path);
      if (expected != nullptr && listed != expected->end()) wanted.expected.insert(*listed);
    }
  }
  return trees.stage(exports.peer(), std::move(wanted));
}

}  // namespace

Result<std::shared_ptr<PackMemory>> PackMemory::make(uint64_t bytes) {
  UniqueFd fd(::memfd_create("sluice-pack", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  // Whoever is handed it to read it, as another user, cannot open it to write to it. Shorter than it is
  // mapped it never becomes, whatever another process that has it does.
  if (!fd || ::fchmod(fd.get(), 0600) != 0 || ::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0 ||
      ::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) != 0)
    return no_memory(errno);
  const Result<std::span<uint8_t>> mapped = map(fd.get(), bytes);
  if (!mapped) return mapped.error();
  return std::shared_ptr<PackMemory>(new PackMemory(std::move(fd), *mapped));
}

Result<std::shared_ptr<PackMemory>> PackMemory::adopt(UniqueFd fd, uint64_t bytes) {
  if (!is_pack(fd.get(), bytes)) return no_pack();
  const Result<std::span<uint8_t>> mapped = map(fd.get(), bytes);
  if (!mapped) return mapped.error();
  return std::shared_ptr<PackMemory>(new PackMemory(std::move(fd), *mapped));
}

Result<PackView> PackView::of(int fd, uint64_t bytes) {
  if (bytes == 0 || !is_pack(fd, bytes)) return no_pack();
  const Result<std::span<uint8_t>> mapped = map(fd, bytes, PROT_READ);
  if (!mapped) return mapped.error();
  return PackView(*mapped);
}

PackView::~PackView() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

PackMemory::~PackMemory() { ::munmap(bytes_.data(), bytes_.size()); }

Result<std::shared_ptr<PackMemory>> fill_pack(const exports::Exports& exports, const catalog::File& pack) {
  if (!pack.pack.list) return Error{ErrorCode::kInternal, "a pack without a list"};
  if (exports::UserTrees* const trees = exports.trees_of_user(); trees != nullptr) {
    Result<UniqueFd> filled = trees->fill_pack(exports.peer(), pack);
    return filled ? PackMemory::adopt(std::move(*filled), pack.size_bytes) : filled.error();
  }
  Result<std::vector<Entry>> entries = tree::from_bytes(*pack.pack.list);
  if (!entries) return entries.error();
  const Result<std::optional<exports::SourceTree>> found = exports.open_tree(pack.path);
  if (!found) return found.error();
  if (!found->has_value())
    return Error{ErrorCode::kSourceUnreadable, pack.path + ": is not the directory that it was"};
  const tree::PackLayout layout = tree::layout_of(*entries);
  if (layout.size_bytes != pack.size_bytes)
    return Error{ErrorCode::kStorage, pack.shown + ": the journal's list is of another pack"};
  Result<std::shared_ptr<PackMemory>> memory = PackMemory::make(pack.size_bytes);
  if (!memory) return memory.error();
  read_files(**found, *entries, (*memory)->bytes().subspan(layout.data_at));
  DCHECK(layout.data_at <= (*memory)->bytes().size(), "the index has room");
  tree::write_index(*entries, (*memory)->bytes());
  return memory;
}

std::vector<catalog::FailedName> names_of_changed(const exports::Exports& exports,
                                                  const catalog::File& pack) {
  if (exports::UserTrees* const trees = exports.trees_of_user(); trees != nullptr)
    return trees->names_of_changed(exports.peer(), pack);
  std::vector<catalog::FailedName> first;
  std::vector<catalog::FailedName> others;
  const Result<std::vector<Entry>> entries =
      pack.pack.list ? tree::from_bytes(*pack.pack.list) : std::vector<Entry>();
  const Result<std::optional<exports::SourceTree>> tree = exports.open_tree(pack.path);
  if (!entries || !tree || !tree->has_value()) return {};
  for (const Entry& entry : *entries) {
    base::note_progress();
    const Failure failure = look_at(**tree, entry);
    std::vector<catalog::FailedName>& names = failure == Failure::kNone ? others : first;
    if (names.size() < catalog::kFailuresKept)
      names.push_back(
          {.path = entry.path, .failure = failure == Failure::kNone ? Failure::kInPack : failure});
  }
  first.insert(first.end(), others.begin(), others.end());
  if (first.size() > catalog::kFailuresKept) first.resize(catalog::kFailuresKept);
  return first;
}

std::string staging_name(const std::string& session_id, ObjectId object) {
  return exports::temporary_name(
      fmt::format("sluice-{}-{}", session_id.substr(0, kSessionDigits), object.value()));
}

Result<std::shared_ptr<exports::Unpacking>> stage_pack(const exports::Exports& exports,
                                                       const catalog::File& pack, const PackMemory& memory,
                                                       const std::string& staging,
                                                       const catalog::AskedNames* asked,
                                                       std::shared_ptr<const digests::Expected> expected) {
  if (exports::UserTrees* const trees = exports.trees_of_user(); trees != nullptr)
    return stage_for_user(exports, *trees, pack, memory, staging, asked, expected.get());
  return stage_here(exports, pack, memory.bytes(), staging, asked, std::move(expected));
}

Result<std::shared_ptr<exports::Unpacking>> stage_here(
    const exports::Exports& exports, const catalog::File& pack, std::span<const uint8_t> bytes,
    const std::string& staging, const catalog::AskedNames* asked,
    std::shared_ptr<const digests::Expected> expected, mode_t umask) {
  Result<exports::DestinationTree> tree = exports.open_destination_tree(pack.path, pack.keep);
  if (!tree) return tree.error();
  auto unpacker =
      std::make_shared<exports::Unpacker>(std::move(*tree), staging,
                                          exports::Unpacker::Options{.overwrite = pack.overwrite,
                                                                     .verify = pack.verify,
                                                                     .keep = pack.keep,
                                                                     .names_max = pack.pack.members,
                                                                     .digests = pack.digests.wanted,
                                                                     .expected = std::move(expected),
                                                                     .umask = umask});
  if (Status status = unpacker->stage(bytes, asked); !status) return status.error();
  return std::shared_ptr<exports::Unpacking>(std::move(unpacker));
}

}  // namespace sluice::gather
