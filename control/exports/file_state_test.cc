// What times and leases tell of a file that is written while it is read. What the system cannot tell is in
// docs/REFERENCE.md.
// SPDX-License-Identifier: Apache-2.0
#include "control/exports/file_state.h"

#include <sys/mman.h>

#include "control/exports/exports_fixture.h"
#include "control/exports/times.h"

namespace sluice::exports {
namespace {

class FileStateTest : public ExportsTest {
 protected:
  UniqueFd open(int flags) const { return UniqueFd(::open(path("data/file").c_str(), flags | O_CLOEXEC)); }
  FileState state() const { return *state_of(open(O_RDONLY).get()); }
  // Whatever the clock says.
  bool has_writer(int fd) const { return may_be_changing(fd, {.ctime_ns = 0}); }
};

INSTANTIATE_TEST_SUITE_P(FileSystems, FileStateTest, testing::Values("/tmp", "/dev/shm"),
                         [](const auto& chosen) {
                           return std::string(chosen.param) == "/tmp" ? "Tmp" : "Shm";
                         });

TEST_P(FileStateTest, IsWhatStatSays) {
  struct stat info {};
  ASSERT_EQ(::stat(path("data/file").c_str(), &info), 0);
  const FileState found = state();
  EXPECT_EQ(found.identity.device, info.st_dev);
  EXPECT_EQ(found.identity.inode, info.st_ino);
  EXPECT_EQ(found.size_bytes, 5U);
  EXPECT_EQ(found.mode, info.st_mode);
  EXPECT_EQ(found.mtime_ns, info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec);
  EXPECT_EQ(found.ctime_ns, info.st_ctim.tv_sec * 1'000'000'000 + info.st_ctim.tv_nsec);
}

TEST_P(FileStateTest, FilesThatAreMadeWhileTheyAreReadDoNotTellTheirSize) {
  const auto tells = [](const std::string& path) {
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    EXPECT_TRUE(fd) << path;
    struct stat info {};
    EXPECT_EQ(::fstat(fd.get(), &info), 0) << path;
    return tells_its_size(fd.get(), info);
  };
  EXPECT_FALSE(tells("/proc/version"));
  EXPECT_FALSE(tells("/proc/sys/kernel/ostype"));
  const char* const page = "/sys/kernel/mm/transparent_hugepage/enabled";
  EXPECT_TRUE(!fs::exists(page) || !tells(page)) << "it says 4096 bytes";
  write(root_ / "data/empty", "");
  EXPECT_TRUE(tells(path("data/empty")));
  EXPECT_TRUE(tells(path("data/file")));
  fs::resize_file(root_ / "data/empty", 1U << 20);
  EXPECT_TRUE(tells(path("data/empty"))) << "a hole, of which the size is known";
  auto proc = Exports::open({{"proc", "/proc/sys/kernel", true, false}});
  ASSERT_TRUE(proc);
  auto why = catalog::Failure::kNone;
  const auto source = proc->open_source("proc/ostype", &why);
  ASSERT_FALSE(source);
  EXPECT_EQ(why, catalog::Failure::kTellsNoSize);
  EXPECT_EQ(source.error().code, ErrorCode::kSourceUnreadable);
}

TEST_P(FileStateTest, AFileThatWasMadeAnewIsAnotherEvenUnderTheSameNumber) {
  const FileState before = state();
  fs::remove(root_ / "data/file");
  write(root_ / "data/file", "hello");
  EXPECT_FALSE(same_file(before.identity, state().identity));
}

TEST_P(FileStateTest, AWriteWhoseMtimeIsPutBackShowsInTheCtime) {
  const auto source = exports_.open_source("data/file");
  ASSERT_TRUE(source);
  const FileState before = state();
  const UniqueFd writer = open(O_RDWR);
  do {
    ASSERT_EQ(::pwrite(writer.get(), "J", 1, 0), 1);
  } while (state().ctime_ns == before.ctime_ns);  // the clock of the file system may tick slowly
  const timespec times[2] = {{0, UTIME_OMIT}, timespec_of(before.mtime_ns)};
  ASSERT_EQ(::futimens(writer.get(), times), 0);
  EXPECT_EQ(state().mtime_ns, before.mtime_ns);
  const auto now = Exports::check_unchanged(*source);
  ASSERT_TRUE(now);
  EXPECT_NE(*now, source->ctime_ns);
}

TEST_P(FileStateTest, AWriterIsSeenAlsoBehindAMapping) {
  const UniqueFd reader = open(O_RDONLY);
  EXPECT_FALSE(has_writer(reader.get()));
  UniqueFd writer = open(O_RDWR);
  EXPECT_TRUE(has_writer(reader.get()));
  void* const map = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, writer.get(), 0);
  ASSERT_NE(map, MAP_FAILED);
  writer = UniqueFd();
  EXPECT_TRUE(has_writer(reader.get()));
  EXPECT_TRUE(exports_.open_source("data/file")->may_be_changing);
  ASSERT_EQ(::munmap(map, 4096), 0);
  EXPECT_FALSE(has_writer(reader.get()));
  const UniqueFd another_reader = open(O_RDONLY);
  EXPECT_FALSE(has_writer(reader.get()));
  EXPECT_TRUE(open(O_RDWR | O_NONBLOCK)) << "nobody is held up by what was asked";
}

TEST_P(FileStateTest, AFileThatWasWrittenThisMomentIsNotTrusted) {
  FileState now = state();
  timespec time{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &time);
  now.ctime_ns = (time.tv_sec + 60) * 1'000'000'000;
  const UniqueFd reader = open(O_RDONLY);
  EXPECT_TRUE(may_be_changing(reader.get(), now));
  now.ctime_ns -= 120'000'000'000;
  EXPECT_FALSE(may_be_changing(reader.get(), now));
}

}  // namespace
}  // namespace sluice::exports
