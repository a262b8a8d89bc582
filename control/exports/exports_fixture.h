// For the tests of this folder: an export tree with nested exports on each of two file systems, the disk of
// /tmp and tmpfs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "control/exports/exports.h"

namespace sluice::exports {
namespace fs = std::filesystem;

class ExportsTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    std::string name = std::string(GetParam()) + "/sluice-exports-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) GTEST_SKIP() << GetParam() << " cannot be written";
    root_ = name;
    for (const char* directory : {"data", "data/sub", "data/readonly", "data/writeonly", "outside"})
      fs::create_directory(root_ / directory);
    write(root_ / "data/file", "hello");
    write(root_ / "outside/secret", "secret");
    auto opened = Exports::open({{"data", root_ / "data", true, true},
                                 {"readonly", root_ / "data/readonly", true, false},
                                 {"writeonly", root_ / "data/writeonly", false, true}});
    ASSERT_TRUE(opened) << opened.error().message;
    exports_ = std::move(*opened);
  }
  void TearDown() override {
    if (!root_.empty()) fs::remove_all(root_);
  }

  static void write(const fs::path& file, std::string_view text) { std::ofstream(file) << text; }
  static std::string read(const fs::path& file) {
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  }
  std::string path(const std::string& relative) const { return (root_ / relative).string(); }

  ErrorCode source_error(const std::string& path) const {
    const auto file = exports_.open_source(path);
    if (file) return ErrorCode::kOk;
    EXPECT_EQ(file.error().message.find('\n'), std::string::npos);
    return file.error().code;
  }
  DestinationSpec spec(const std::string& relative, uint64_t size = 5) const {
    return {.path = path(relative), .name = "source-name", .size = size};
  }
  Error destination_error(const DestinationSpec& wanted) const {
    const auto file = exports_.create_destination(wanted);
    return file ? Error{ErrorCode::kOk, ""} : file.error();
  }
  // Writes whole aligned blocks, as the dataplane does.
  static void fill(const DestinationFile& file, std::string_view text) {
    void* block = nullptr;
    ASSERT_EQ(::posix_memalign(&block, 4096, 4096), 0);
    std::fill_n(static_cast<char*>(block), 4096, '#');
    std::copy(text.begin(), text.end(), static_cast<char*>(block));
    EXPECT_EQ(::pwrite(file.fd(), block, 4096, 0), 4096);
    ::free(block);
  }
  static Status complete(DestinationFile& file) {
    if (auto status = file.finish(); !status) return status;
    return file.commit();
  }
  size_t entries(const std::string& relative) const {
    return static_cast<size_t>(
        std::distance(fs::directory_iterator(root_ / relative), fs::directory_iterator()));
  }

  fs::path root_;
  Exports exports_;
};

// `work` on an export "small" at a disk of one MiB: 0, or what was wrong. In a mount namespace of a child, so
// that nothing stays mounted whatever happens.
template <typename Work>
void expect_good_on_a_small_disk(Work work) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root for a small tmpfs";
  constexpr int kNoMounts = 77;
  char name[] = "/tmp/sluice-exports-XXXXXX";
  const fs::path root = ::mkdtemp(name);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (::unshare(CLONE_NEWNS) != 0 || ::mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", root.c_str(), "tmpfs", 0, "size=1m") != 0)
      ::_exit(kNoMounts);
    const auto exports = Exports::open({{"small", root, true, true}});
    ::_exit(work(*exports, root));
  }
  int result = 0;
  ASSERT_EQ(::waitpid(child, &result, 0), child);
  fs::remove_all(root);
  if (WIFEXITED(result) && WEXITSTATUS(result) == kNoMounts) GTEST_SKIP() << "no mount namespaces here";
  EXPECT_TRUE(WIFEXITED(result));
  EXPECT_EQ(WEXITSTATUS(result), 0);
}

}  // namespace sluice::exports
