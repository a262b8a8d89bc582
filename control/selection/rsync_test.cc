// Rules by chance over trees by chance: what a Filter takes is what rsync takes.
//
// rsync is asked some questions at once, since it mostly waits for itself. SLUICE_TEST_SEED=N tries others.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>

#include "control/selection/filter.h"

namespace sluice::selection {
namespace {

namespace fs = std::filesystem;

constexpr int kTrees = 10;
constexpr int kListsOfATree = 48;
constexpr int kAtOnce = 8;
constexpr int kNamesOfATree = 160;

struct Entry {
  std::string path;
  bool is_directory;
};

class Rsync : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::system("rsync --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "needs rsync";
    fs::create_directories(folder_ / "to");
  }
  void TearDown() override { fs::remove_all(folder_); }

  size_t below(size_t bound) { return random_() % bound; }
  bool once_in(size_t times) { return below(times) == 0; }
  std::string one_of(const std::vector<std::string>& words) { return words[below(words.size())]; }

  // Few letters, so that patterns meet names; and every byte that means something in a pattern.
  std::string name() {
    std::string made;
    for (size_t length = 1 + below(4); made.size() < length;) {
      made += once_in(3)
                  ? one_of({"*", "?", "[", "]", "\\", "-", "!", "^", ".", " ", ":", "\xC3\xA9", "Z", "7"})
                  : one_of({"a", "b", "c"});
    }
    return made == "." || made == ".." ? name() : made;
  }

  // A directory stands before what is in it.
  void make_tree() {
    fs::remove_all(folder_ / "from");
    fs::create_directories(folder_ / "from");
    tree_.clear();
    std::vector<std::string> directories{""};
    for (int i = 0; i < kNamesOfATree; ++i) {
      const std::string path = directories[below(directories.size())] + name();
      const bool is_directory = once_in(3);
      if (fs::exists(folder_ / "from" / path)) continue;
      if (is_directory) {
        fs::create_directory(folder_ / "from" / path);
        directories.push_back(path + "/");
      } else {
        std::ofstream(folder_ / "from" / path).flush();
      }
      tree_.push_back({path, is_directory});
    }
  }

  std::string char_class() {
    std::string made = one_of({"[", "[", "[!", "[^"});
    for (size_t parts = 1 + below(3); parts > 0; --parts) {
      made += one_of({"a", "b",    "c",         "a-c",       "b-",        "-",         "]",      "[",
                      "!", "\\",   "\\]",       "\\-",       "Z-\\c",     "+-9",       "*",      "?",
                      "/", "\xA9", "[:alpha:]", "[:digit:]", "[:punct:]", "[:space:]", "[:no:]", "[:a"});
    }
    return made + (once_in(20) ? "" : "]");
  }

  std::string wildcard() {
    return once_in(3) ? char_class()
                      : one_of({"*", "*", "*", "?", "?", "**", "**", "***", "\\", "\\*", "\\?", "\\["});
  }

  // Part of a name that there is, with wildcards in place of some bytes, and more or fewer slashes.
  std::string pattern() {
    std::string path = tree_[below(tree_.size())].path;
    if (once_in(6)) path = name() + "/" + name();
    size_t begin = 0;
    if (!once_in(3)) begin = path.rfind('/') + 1;
    if (begin > 0 && once_in(3)) begin = path.rfind('/', begin - 2) + 1;
    std::string made = once_in(4) ? one_of({"/", "/", "/", "**", "**/", "*/", "/**/", "//"}) : "";
    const size_t rarity = 2 + below(8);
    for (size_t at = begin; at < path.size(); ++at) {
      if (!once_in(rarity)) {
        made += path[at];
        continue;
      }
      made += wildcard();
      if (once_in(3)) at += below(path.size());  // it stands for more than a byte
      if (once_in(8)) made += path[std::min(at, path.size() - 1)];
    }
    if (once_in(3))
      made += one_of({"/", "/", "*", "**", "***", "/*", "/**", "/***", "/***/", "?", "\\", "//"});
    return made;
  }

  std::vector<Rule> rules() {
    std::vector<Rule> made;
    for (size_t count = 1 + below(9); made.size() < count;) {
      made.push_back({.include = once_in(3), .pattern = pattern()});
    }
    if (once_in(6)) made.push_back({.include = false, .pattern = one_of({"*", "**", "/*", "?*", "*[!/]"})});
    return made;
  }

  std::set<std::string> taken(const Filter& filter) const {
    std::set<std::string> names;
    for (const auto& [path, is_directory] : tree_) {
      const size_t slash = path.rfind('/');
      const bool reached = slash == std::string::npos || names.contains(path.substr(0, slash + 1));
      if (reached && filter.takes(path, is_directory)) names.insert(path + (is_directory ? "/" : ""));
    }
    return names;
  }

  FILE* ask_rsync(const std::vector<Rule>& rules, int number) const {
    const fs::path file = folder_ / ("rules" + std::to_string(number));
    std::ofstream out(file);
    for (const Rule& rule : rules) out << (rule.include ? "+ " : "- ") << rule.pattern << '\n';
    out.close();
    const std::string at = folder_.string();
    // -8: bytes above 127 as they are. C: one byte is one character.
    const std::string command = "LC_ALL=C rsync -8 -r --dry-run --out-format=%n -f '. " + file.string() +
                                "' '" + at + "/from/' '" + at + "/to/' 2>&1";
    return ::popen(command.c_str(), "r");
  }

  static std::set<std::string> answer(FILE* pipe) {
    std::string text;
    std::array<char, 4096> buffer{};
    while (const size_t got = std::fread(buffer.data(), 1, buffer.size(), pipe))
      text.append(buffer.data(), got);
    EXPECT_EQ(::pclose(pipe), 0) << text;
    std::set<std::string> names;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      names.insert(text.substr(at, end - at));
      at = end + 1;
    }
    names.erase("./");
    return names;
  }

  // How many of them took some names, but not all.
  int compare_lists() {
    std::array<std::vector<Rule>, kAtOnce> lists;
    std::array<FILE*, kAtOnce> pipes{};
    for (int i = 0; i < kAtOnce; ++i) {
      lists[i] = rules();
      pipes[i] = ask_rsync(lists[i], i);
    }
    int telling = 0;
    for (int i = 0; i < kAtOnce; ++i) {
      const auto theirs = answer(pipes[i]);
      const auto filter = Filter::make(lists[i]);
      EXPECT_TRUE(filter);
      const auto ours = taken(*filter);
      telling += !theirs.empty() && theirs.size() < tree_.size() ? 1 : 0;
      if (ours != theirs) ADD_FAILURE() << difference(lists[i], ours, theirs);
    }
    return telling;
  }

  static std::string difference(const std::vector<Rule>& rules, const std::set<std::string>& ours,
                                const std::set<std::string>& theirs) {
    std::string told;
    for (const Rule& rule : rules) told += (rule.include ? "+ " : "- ") + rule.pattern + "\n";
    for (const std::string& each : ours) told += theirs.contains(each) ? "" : "only ours: " + each + "\n";
    for (const std::string& each : theirs) told += ours.contains(each) ? "" : "only rsync's: " + each + "\n";
    return told;
  }

  const fs::path folder_ = fs::temp_directory_path() / ("sluice-rsync-test-" + std::to_string(::getpid()));
  std::mt19937_64 random_{seed()};
  std::vector<Entry> tree_;

 private:
  static uint64_t seed() {
    const char* const given = std::getenv("SLUICE_TEST_SEED");
    return given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
  }
};

TEST_F(Rsync, TakesTheSameNames) {
  int telling = 0;
  for (int tree = 0; tree < kTrees && !HasFailure(); ++tree) {
    make_tree();
    for (int lists = 0; lists < kListsOfATree; lists += kAtOnce) telling += compare_lists();
  }
  EXPECT_GT(telling, kTrees * kListsOfATree / 2) << "rules that take all or nothing compare little";
  RecordProperty("telling", telling);
}

}  // namespace
}  // namespace sluice::selection
