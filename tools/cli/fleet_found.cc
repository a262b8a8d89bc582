// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/fleet_found.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <map>
#include <set>
#include <utility>

#include "dataplane/base/file_time.h"
#include "dataplane/base/path.h"
#include "tools/cli/names_format.h"

namespace sluice::cli {
namespace {

constexpr size_t kDirectoriesKept = 64;  // lists of the peer, since names come in order

class Finder {
 public:
  Finder(api::Client& client, const fleet::Plan& plan, const fleet::Place& peer)
      : client_(client), plan_(plan), peer_(peer) {}

  FoundNames find(const std::vector<std::string>& names) {
    std::vector<bool> there;
    std::set<Inode> incomplete;
    std::vector<std::optional<Inode>> inodes;
    for (const std::string& name : names) {
      const Own own = look(name);
      const bool same = own.there && is_there(name, own);
      there.push_back(same);
      inodes.push_back(own.several ? std::optional(own.inode) : std::nullopt);
      if (own.several && !same) incomplete.insert(own.inode);
      sizes_.push_back(own.size);
    }
    FoundNames found;
    for (size_t i = 0; i < names.size(); ++i) {
      if (!there[i] || (inodes[i] && incomplete.contains(*inodes[i]))) {
        found.missing.push_back(names[i]);
        continue;
      }
      ++found.found;
      found.found_bytes += sizes_[i];
    }
    return found;
  }

 private:
  using Inode = std::pair<uint64_t, uint64_t>;
  struct Own {
    bool there = false;
    bool link = false;
    bool several = false;
    Inode inode;
    uint64_t size = 0;
    uint32_t mode = 0;
    base::FileTimeNs mtime_ns = 0;
    std::string text;
  };

  Own look(const std::string& name) const {
    const std::string path = path_beneath(plan_.here().front().path, name);
    struct stat info {};
    Own own;
    if (::lstat(path.c_str(), &info) != 0) return own;
    own.link = S_ISLNK(info.st_mode);
    own.there = own.link || S_ISREG(info.st_mode);
    own.several = S_ISREG(info.st_mode) && info.st_nlink > 1 && plan_.at == fleet::Side::kFrom;
    own.inode = {info.st_dev, info.st_ino};
    own.size = own.link ? 0 : static_cast<uint64_t>(info.st_size);
    own.mode = info.st_mode & 0777;
    own.mtime_ns = base::file_time_ns(info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
    if (!own.link) return own;
    std::array<char, base::kPathBytesMax> text{};
    const ssize_t length = ::readlink(path.c_str(), text.data(), text.size());
    own.text.assign(text.data(), length > 0 ? static_cast<size_t>(length) : 0);
    return own;
  }

  bool is_there(const std::string& name, const Own& own) {
    const size_t slash = name.rfind('/');
    const auto& entries = list(slash == std::string::npos ? "" : name.substr(0, slash));
    const auto found = entries.find(slash == std::string::npos ? name : name.substr(slash + 1));
    if (found == entries.end()) return false;
    const api::NameEntry& entry = found->second;
    if (own.link) return entry.type() == api::NameEntry::LINK && entry.target() == own.text;
    return entry.type() == api::NameEntry::FILE && entry.size() == own.size &&
           (entry.mode() & 0777) == own.mode && base::file_time_of(entry) == own.mtime_ns;
  }

  const std::map<std::string, api::NameEntry>& list(const std::string& directory) {
    const auto known = lists_.find(directory);
    if (known != lists_.end()) return known->second;
    if (lists_.size() >= kDirectoriesKept) lists_.clear();
    auto& entries = lists_[directory];
    api::ListNamesRequest asked;
    asked.set_peer(peer_.node);
    asked.set_path(directory.empty() ? peer_.path : path_beneath(peer_.path, directory));
    const Status status = client_.list_names(asked, [&entries](const api::ListNamesReply& part) {
      for (const api::NameEntry& each : part.entries()) {
        if (each.error_code() == 0) entries.emplace(each.path(), each);
      }
      return true;
    });
    if (!status) entries.clear();
    return entries;
  }

  api::Client& client_;
  const fleet::Plan& plan_;
  const fleet::Place& peer_;
  std::vector<uint64_t> sizes_;
  std::map<std::string, std::map<std::string, api::NameEntry>> lists_;
};

}  // namespace

FoundNames find_names(api::Client& client, const fleet::Plan& plan, const fleet::Place& peer,
                      const std::vector<std::string>& names) {
  return Finder(client, plan, peer).find(names);
}

}  // namespace sluice::cli
