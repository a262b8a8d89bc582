// Trees of real files.
// SPDX-License-Identifier: Apache-2.0
#include "tools/manifest/check.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "tools/manifest/in_order.h"
#include "tools/manifest/write_list.h"

namespace sluice::manifest {
namespace {

namespace fs = std::filesystem;

// Of "abc" and "xyz".
const std::string kAbc = "900150983cd24fb0d6963f7d28e17f72";
const std::string kXyz = "d16fb36f0911f878998c136191af705e";

class CheckTest : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(tree_ / "sub");
    put(tree_ / "a", "abc");
    put(tree_ / "sub/b", "xyz");
    put(root_ / "secret", "abc");
  }
  void TearDown() override { fs::remove_all(root_); }

  static void put(const fs::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }

  // The findings as "problem name".
  Counts check(const std::string& list, CheckOptions options = {}) {
    found_.clear();
    std::istringstream in(list);
    if (options.path.empty()) options.path = tree_;
    if (options.list_name.empty()) options.list_name = "list";
    if (options.jobs == 1) options.jobs = 3;
    const auto counts = check_list(options, in, pace_, [this](const Finding& finding) {
      found_.push_back(std::string(name_of(finding.problem)) + " " + finding.name);
    });
    error_ = counts ? Error{ErrorCode::kOk, ""} : counts.error();
    return counts ? *counts : Counts();
  }
  using Found = std::vector<std::string>;

  const fs::path root_ = fs::temp_directory_path() / ("sluice-manifest-test-" + std::to_string(::getpid()));
  const fs::path tree_ = root_ / "tree";
  Pace pace_;
  Found found_;
  Error error_;
};

TEST_F(CheckTest, NamesWhatDiffersAndWhatIsMissing) {
  const Counts counts = check(kAbc + "  a\n" + kAbc + "  sub/b\n" + kAbc + "  ./c\n" + kAbc + " *sub/none/d");
  EXPECT_EQ(counts.good, 1U);
  EXPECT_EQ(counts.differs, 1U);
  EXPECT_EQ(counts.missing, 2U);
  EXPECT_EQ(found_, (Found{"differs sub/b", "missing ./c", "missing sub/none/d"})) << "in the list's order";
  EXPECT_EQ(verdict_of(counts), ErrorCode::kIntegrity);
  EXPECT_EQ(pace_.bytes.load(), 6U);
  EXPECT_EQ(verdict_of(check(kAbc + "  a\n" + kXyz + "  sub/b\n")), ErrorCode::kOk);
}

TEST(Verdict, WhereNothingOfTheListIsThereIsNotGood) {
  EXPECT_EQ(verdict_of({.good = 1, .ignored = 2}), ErrorCode::kOk);
  EXPECT_EQ(verdict_of({.good_before = 1, .ignored = 2}), ErrorCode::kOk);
  EXPECT_EQ(verdict_of({.ignored = 2}), ErrorCode::kIntegrity);
  EXPECT_EQ(verdict_of({}), ErrorCode::kOk) << "an empty list";
}

TEST_F(CheckTest, NoNameLeadsOut) {
  fs::create_symlink(root_ / "secret", tree_ / "link");
  fs::create_symlink("a", tree_ / "inner");
  fs::create_directory_symlink(root_, tree_ / "up");
  ASSERT_EQ(::mkfifo((tree_ / "pipe").c_str(), 0600), 0);
  std::string list;
  const Found names = {
      "../secret", "sub/../../secret", "/etc/hostname", "link", "inner", "up/secret", "sub", "pipe", "."};
  Found expected;
  for (const std::string& name : names) {
    list += kAbc + "  " + name + "\n";
    expected.push_back("refused " + name);
  }
  const Counts counts = check(list);
  EXPECT_EQ(found_, expected);
  EXPECT_EQ(counts.refused, names.size());
  EXPECT_EQ(pace_.bytes.load(), 0U) << "nothing was read";
}

TEST_F(CheckTest, NamesFromAnotherPlace) {
  EXPECT_EQ(check(kAbc + "  " + (tree_ / "a").string() + "\n").good, 1U) << "absolute, beneath the directory";
  EXPECT_EQ(check(kAbc + "  /srv/x/a\n").refused, 1U);
  EXPECT_EQ(check(kAbc + "  /srv/x/a\n" + kXyz + "  /srv/x/sub/b\n", {.strip_prefix = "/srv/x/"}).good, 2U);
  EXPECT_EQ(check(kAbc + "  run42/a\n", {.strip_prefix = "run42"}).good, 1U);
  EXPECT_EQ(check(kAbc + "  /srv/xy/a\n", {.strip_prefix = "/srv/x"}).refused, 1U);
}

TEST_F(CheckTest, ExtraFiles) {
  put(tree_ / ".half.sluice-part", "abc");
  const std::string list = kAbc + "  ./sub//../a\n" + kAbc + "  a\n";
  EXPECT_EQ(check(list, {.extra = true}).extra, 1U);
  EXPECT_EQ(found_, (Found{"refused ./sub//../a", "extra sub/b"}));
  EXPECT_EQ(check(kAbc + "  .//a\n" + kXyz + "  sub/./b", {.extra = true}).extra, 0U);
  EXPECT_EQ(check(kAbc + "  a\n").extra, 0U) << "only where it is wished";
}

TEST_F(CheckTest, OneFileOfAList) {
  EXPECT_EQ(check(kXyz + "  sub/b\n" + kXyz + "  a\n", {.path = tree_ / "sub/b"}).good, 1U);
  EXPECT_TRUE(found_.empty());
  check(kXyz + "  other\n", {.path = tree_ / "sub/b"});
  EXPECT_EQ(error_.code, ErrorCode::kUsage);
  check("# nothing\n");
  EXPECT_EQ(error_.code, ErrorCode::kUsage);
  check(kAbc + "  a\n", {.path = tree_ / "nowhere"});
  EXPECT_EQ(error_.code, ErrorCode::kSourceUnreadable);
}

TEST_F(CheckTest, AListThatIsNoneEndsWithItsLine) {
  check(kAbc + "  a\nnonsense\n");
  EXPECT_EQ(error_.code, ErrorCode::kUsage);
  EXPECT_EQ(error_.message.find("list:2: "), 0U) << error_.message;
  check(kXyz + "  a\n" + kAbc + "  none\nnonsense\n");
  EXPECT_EQ(error_.message.find("list:3: "), 0U) << error_.message;
  EXPECT_EQ(found_, (Found{"differs a", "missing none"})) << "what stands before it is checked";
  check(std::string(3 * kLineBytesMax, 'a'));
  EXPECT_EQ(error_.code, ErrorCode::kUsage);
}

TEST_F(CheckTest, SizesAndSeveralDigests) {
  const std::string head = "%%%% HASHDEEP-1.0\n%%%% size,md5,sha256,filename\n";
  const std::string sha = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  EXPECT_EQ(check(head + "3," + kAbc + "," + sha + ",a\n").good, 1U);
  EXPECT_EQ(check(head + "4," + kAbc + "," + sha + ",a\n").differs, 1U);
  EXPECT_EQ(check(head + "3," + kAbc + "," + std::string(64, '0') + ",a\n").differs, 1U);
}

TEST_F(CheckTest, SeveralLinesOfOneFileAreReadOnce) {
  const std::string md5 = "MD5 (a) = ";
  const std::string sha1 = "SHA1 (a) = a9993e364706816aba3e25717850c26c9cd0d89d\n";
  EXPECT_EQ(check(md5 + kAbc + "\n" + sha1 + "MD5 (sub/b) = " + kXyz).good, 2U);
  EXPECT_EQ(pace_.bytes.load(), 6U);
  EXPECT_EQ(check(sha1 + md5 + kXyz).differs, 1U) << "each of them counts";
  EXPECT_EQ(check(sha1 + md5 + kXyz + "\n" + sha1 + sha1).differs, 1U);
}

TEST_F(CheckTest, ResumesWithWhatWasGood) {
  const std::string list = kAbc + "  a\n" + kAbc + "  sub/b\n";
  const CheckOptions options{.resume = root_ / "state"};
  Counts counts = check(list, options);
  EXPECT_EQ(counts.good, 1U);
  EXPECT_EQ(counts.differs, 1U);
  // What is good is not read again; what was bad is, and so is what was written since.
  pace_.bytes = 0;
  counts = check(list, options);
  EXPECT_EQ(counts.good_before, 1U);
  EXPECT_EQ(counts.differs, 1U);
  EXPECT_EQ(pace_.bytes.load(), 3U);
  put(tree_ / "a", "abd");
  EXPECT_EQ(check(list, options).differs, 2U);
  // Of another list it is not taken.
  check(list + kAbc + "  c\n", options);
  EXPECT_EQ(error_.code, ErrorCode::kUsage) << error_.message;
  // A torn line is ignored, and the file goes when all was good.
  put(tree_ / "a", "abc");
  put(tree_ / "sub/b", "abc");
  std::ofstream(root_ / "state", std::ios::app) << "2 12 3 4";
  EXPECT_EQ(check(list, options).good, 2U);
  EXPECT_FALSE(fs::exists(root_ / "state"));
  put(root_ / "state", "something of mine\n");
  check(list, options);
  EXPECT_EQ(error_.code, ErrorCode::kUsage);
  std::ostringstream kept;
  kept << std::ifstream(root_ / "state").rdbuf();
  EXPECT_EQ(kept.str(), "something of mine\n");
}

TEST_F(CheckTest, StopsAndSaysSo) {
  pace_.stop = true;
  EXPECT_TRUE(check(kAbc + "  a\n", {.resume = root_ / "state"}).interrupted);
  EXPECT_TRUE(fs::exists(root_ / "state"));
}

TEST_F(CheckTest, AListThatIsWrittenIsGood) {
  put(tree_ / "odd\nname", "abc");
  fs::create_symlink("a", tree_ / "link");
  const auto no_finding = [](const Finding& finding) { ADD_FAILURE() << finding.name << finding.reason; };
  for (const Format format : {Format::kSum, Format::kTag}) {
    // Within the tree: neither the list nor what it is written to is in it.
    const WriteOptions options{.path = tree_,
                               .list = tree_ / "list",
                               .format = format,
                               .kinds = {Kind::kSha512},
                               .jobs = 3,
                               .replace = format == Format::kTag};
    const auto written = write_list(options, pace_, no_finding);
    ASSERT_TRUE(written) << written.error().message;
    EXPECT_EQ(written->files, 3U);
    EXPECT_EQ(written->others, 1U);
    std::ostringstream text;
    text << std::ifstream(tree_ / "list").rdbuf();
    struct stat info {};
    ASSERT_EQ(::stat((tree_ / "list").c_str(), &info), 0);
    const Counts counts =
        check(text.str(), {.extra = true, .list_file = std::pair(info.st_dev, info.st_ino)});
    EXPECT_EQ(counts.good, 3U) << text.str();
    EXPECT_EQ(counts.extra, 0U);
  }
  const WriteOptions again{.path = tree_, .list = tree_ / "list", .kinds = {Kind::kMd5}};
  const auto refused = write_list(again, pace_, no_finding);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kDestinationExists);
  size_t names = 0;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator(tree_)) ++names;
  EXPECT_EQ(names, 5U) << "nothing was left beside it";
}

TEST_F(CheckTest, ABag) {
  fs::create_directories(tree_ / "data/deep");
  put(tree_ / "data/deep/x%", "abc");
  const WriteOptions options{
      .path = tree_, .list = tree_ / "manifest-md5.txt", .format = Format::kBagit, .kinds = {Kind::kMd5}};
  const auto written = write_list(options, pace_, [](const Finding&) {});
  ASSERT_TRUE(written) << written.error().message;
  std::ostringstream text;
  text << std::ifstream(options.list).rdbuf();
  EXPECT_EQ(text.str(), kAbc + "  data/deep/x%25\n");
  put(tree_ / "data/more", "");
  const Counts counts = check(text.str(), {.list_name = options.list.string(), .extra = true});
  EXPECT_EQ(counts.good, 1U);
  EXPECT_EQ(found_, Found{"extra data/more"}) << "what stands beside data/ is in other lists";
}

TEST(InOrder, TakesInOrderAndEndsEarly) {
  for (const size_t threads : {1U, 4U}) {
    size_t given = 0;
    std::vector<size_t> taken;
    InOrder<size_t, size_t> work(threads, 8,
                                 {.next = [&]() -> std::optional<size_t> {
                                    if (given == 1000) return std::nullopt;
                                    return given++;
                                  },
                                  .work = [](size_t&& number) { return number; },
                                  .take =
                                      [&](size_t&& number) {
                                        taken.push_back(number);
                                        return number < 500;
                                      }});
    work.run();
    ASSERT_EQ(taken.size(), 501U);
    for (size_t i = 0; i < taken.size(); ++i) EXPECT_EQ(taken[i], i);
    EXPECT_LE(given, 501U + 8U);
  }
}

}  // namespace
}  // namespace sluice::manifest
