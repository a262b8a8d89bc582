// A tree that comes into an export. For tests.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/fsuid.h>

#include <map>
#include <set>
#include <string_view>

#include "control/exports/exports_fixture.h"
#include "control/exports/unpack.h"
#include "control/tree/pack_for_test.h"

namespace sluice::exports {

using catalog::Entry;
using catalog::EntryKind;
using catalog::Failure;
using tree::test::Bytes;
using tree::test::Content;

// While it lives, this thread reaches no more of the file system than any user does.
class AsNobody {
 public:
  AsNobody() { ::setfsuid(kNobody); }
  ~AsNobody() { ::setfsuid(0); }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;
  static constexpr uid_t kNobody = 65534;
};

class UnpackTest : public ExportsTest {
 protected:
  static constexpr const char* kStaging = ".sluice-test.sluice-part";
  using Names = std::map<std::string, Failure>;

  std::unique_ptr<Unpacker> unpacker(Unpacker::Options options = {}, const std::string& into = "data") const {
    Result<DestinationTree> tree = exports_.open_destination_tree(into);
    EXPECT_TRUE(tree) << tree.error().message;
    // In memory by several threads, however quick it is.
    if (std::string_view(GetParam()) == "/dev/shm") options.threads.slow_ns = 0;
    return std::make_unique<Unpacker>(std::move(*tree), kStaging, options);
  }
  // What did not arrive.
  static Names missing(const Unpacker& unpacker) {
    Names names;
    for (const catalog::FailedName& each : unpacker.missing().names) names[each.path] = each.failure;
    EXPECT_EQ(unpacker.missing().failed + unpacker.missing().left_out, names.size());
    return names;
  }
  Names unpack(const Content& content, Unpacker::Options options = {}) const {
    const auto one = unpacker(options);
    Status status = one->stage(content.pack());
    EXPECT_TRUE(status) << status.error().message;
    if (status) status = one->commit();
    EXPECT_TRUE(status) << status.error().message;
    EXPECT_FALSE(fs::exists(root_ / "data" / kStaging));
    return missing(*one);
  }
  std::string text(const std::string& name) const { return read(root_ / "data" / name); }
  bool there(const std::string& name) const {
    return fs::symlink_status(root_ / "data" / name).type() != fs::file_type::not_found;
  }
  struct stat info(const std::string& name) const {
    struct stat info {};
    EXPECT_EQ(::lstat(path("data/" + name).c_str(), &info), 0) << name;
    return info;
  }
  int64_t mtime_ns(const std::string& name) const {
    const struct stat found = info(name);
    return found.st_mtim.tv_sec * 1'000'000'000 + found.st_mtim.tv_nsec;
  }
  mode_t mode(const std::string& name) const { return info(name).st_mode & 07777; }
  // All of it, so that a process without rights can use it; false where this one cannot give it away.
  bool give_to_nobody() const {
    if (::geteuid() != 0 || ::chmod(root_.c_str(), 0755) != 0) return false;
    for (const auto& each : fs::recursive_directory_iterator(root_))
      if (::lchown(each.path().c_str(), AsNobody::kNobody, 0) != 0) return false;
    return true;
  }
};

inline Entry directory(const std::string& path, uint32_t mode = 0755, int64_t mtime_ns = 1'000'000'001) {
  return {.path = path, .kind = EntryKind::kDirectory, .mode = mode, .mtime_ns = mtime_ns};
}
inline Entry symlink(const std::string& path, const std::string& target, int64_t mtime_ns = 1'000'000'001) {
  return {.path = path, .kind = EntryKind::kSymlink, .mtime_ns = mtime_ns, .target = target};
}
// Of a file as tree::test::file makes it.
inline Entry hard_link(const std::string& path, const std::string& target) {
  Entry entry = tree::test::file(path, "");
  entry.kind = EntryKind::kHardLink;
  entry.target = target;
  return entry;
}

}  // namespace sluice::exports
