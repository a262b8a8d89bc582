// SPDX-License-Identifier: Apache-2.0
#include "control/runtime/list_reader.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "control/tree/pack.h"

namespace sluice::runtime {
namespace {

namespace fs = std::filesystem;

constexpr int kOfAPack = 4096;

class ListReaderTest : public testing::Test {
 protected:
  ListReaderTest() {
    char name[] = "/tmp/sluice-list-XXXXXX";
    root_ = ::mkdtemp(name);
    exports_ = std::make_shared<const exports::Exports>(
        std::move(*exports::Exports::open({{"from", root_, true, false}})));
  }
  ~ListReaderTest() override { fs::remove_all(root_); }

  void make(const std::string& directory, int files) const {
    fs::create_directories(root_ / directory);
    for (int i = 0; i < files; ++i) std::ofstream(root_ / directory / ("f" + std::to_string(i)));
  }
  std::shared_ptr<ListReader> reader(const std::string& path, std::vector<catalog::File> known = {}) {
    return std::make_shared<ListReader>(
        io_, async::KeyedPart{.pool = pool_, .key = {.name = "from"}},
        ListReader::What{.exports = exports_, .paths = {path}, .selection = {}, .known = std::move(known)});
  }
  Result<ListReader::Part> next(ListReader& list) {
    std::optional<Result<ListReader::Part>> answer;
    list.next([&answer](Result<ListReader::Part> part) { answer.emplace(std::move(part)); });
    EXPECT_FALSE(answer) << "not from within the question";
    while (!answer) io_.run_one();
    return std::move(*answer);
  }
  // Each name once, in all parts together.
  static void note(const gather::OpenSources& found, std::set<std::string>* names) {
    EXPECT_EQ(found.files.size(), found.open.size());
    for (const catalog::File& file : found.files) {
      if (!file.packed()) {
        EXPECT_TRUE(names->insert(file.name).second) << file.name;
        continue;
      }
      const Result<std::vector<catalog::Entry>> entries = tree::from_bytes(*file.pack.list);
      for (const catalog::Entry& entry : *entries)
        EXPECT_TRUE(names->insert(entry.path).second) << entry.path;
    }
  }

  fs::path root_;
  std::shared_ptr<const exports::Exports> exports_;
  asio::io_context io_;
  asio::executor_work_guard<asio::io_context::executor_type> works_ = asio::make_work_guard(io_);
  async::KeyedPool pool_{io_, 1};
};

TEST_F(ListReaderTest, WhatFitsIntoOnePartComesWithItsEnd) {
  make("t/sub", 5);
  const std::shared_ptr<ListReader> list = reader("from/t");
  const Result<ListReader::Part> part = next(*list);
  ASSERT_TRUE(part) << part.error().message;
  EXPECT_TRUE(part->ended) << "or each session would be one whose list grows";
  std::set<std::string> names;
  note(part->found, &names);
  EXPECT_EQ(names.size(), 7U);
}

TEST_F(ListReaderTest, WhatFillsAPackComesBeforeTheEndAndAllOfItOnce) {
  make("t/a", kOfAPack + 10);
  make("t/b", kOfAPack);
  const std::shared_ptr<ListReader> list = reader("from/t");
  std::set<std::string> names;
  size_t packs = 0;
  for (bool ended = false; !ended;) {
    const Result<ListReader::Part> part = next(*list);
    ASSERT_TRUE(part) << part.error().message;
    EXPECT_TRUE(part->ended || !part->found.files.empty());
    note(part->found, &names);
    packs += part->found.files.size();
    ended = part->ended;
  }
  EXPECT_EQ(names.size(), 2U * kOfAPack + 10 + 3);
  EXPECT_EQ(packs, 4U);
}

TEST_F(ListReaderTest, WhatIsKnownIsLeftOut) {
  make("t/a", kOfAPack + 10);
  const std::shared_ptr<ListReader> first = reader("from/t");
  std::vector<catalog::File> all;
  for (bool ended = false; !ended;) {
    Result<ListReader::Part> part = next(*first);
    ASSERT_TRUE(part);
    ended = part->ended;
    std::move(part->found.files.begin(), part->found.files.end(), std::back_inserter(all));
  }
  ASSERT_EQ(all.size(), 3U);
  const std::shared_ptr<ListReader> again = reader("from/t", {all[0]});
  std::set<std::string> names;
  Result<ListReader::Part> part = next(*again);
  ASSERT_TRUE(part && part->ended);
  note(part->found, &names);
  EXPECT_EQ(names.size(), 10U + 2) << "the rest, and directories";
}

TEST_F(ListReaderTest, AnErrorIsTold) {
  const std::shared_ptr<ListReader> list = reader("from/nothing");
  const Result<ListReader::Part> part = next(*list);
  ASSERT_FALSE(part);
  EXPECT_NE(part.error().message.find("nothing"), std::string::npos);
}

TEST_F(ListReaderTest, NobodyIsAnsweredWhoHasLetGoOfIt) {
  make("t/a", kOfAPack);
  std::shared_ptr<ListReader> list = reader("from/t");
  bool told = false;
  list->next([&told](const Result<ListReader::Part>&) { told = true; });
  list.reset();
  bool over = false;
  pool_.run(
      {.name = "from"}, [] { return 0; }, [&over](int) { over = true; });  // behind it on the only thread
  while (!over) io_.run_one();
  io_.poll();
  EXPECT_FALSE(told);
}

}  // namespace
}  // namespace sluice::runtime
