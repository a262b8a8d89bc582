// SPDX-License-Identifier: Apache-2.0
#include "control/exports/sorted_names.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "control/exports/exports_fixture.h"

namespace sluice::exports {
namespace {

class SortedNamesTest : public ExportsTest {
 protected:
  void make(const std::string& name) {
    write(root_ / "data/sub" / name, "");
    expected_.insert(name);
  }
  UniqueFd open() const {
    return UniqueFd(::open((root_ / "data/sub").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  std::vector<std::string> all(SortedNames& names) {
    const UniqueFd fd = open();
    std::vector<std::string> found;
    std::string name;
    while (names.next(fd.get(), pulse_, &name) == 1) found.push_back(name);
    return found;
  }

  std::set<std::string> expected_;
  Pulse pulse_;
};

TEST_P(SortedNamesTest, GivesEachNameOnceInOrderHoweverLittleRoomThereIs) {
  for (int i = 0; i < 1000; ++i)
    make("n" + std::to_string(i * 7919 % 1000) + std::string(static_cast<size_t>(i % 40), 'x'));
  make("\xff\x01");
  make(std::string(255, 'z'));
  for (const size_t room : {size_t{1} << 20, size_t{4096}, size_t{300}}) {
    SortedNames names(room);
    EXPECT_EQ(all(names), std::vector<std::string>(expected_.begin(), expected_.end())) << room;
    EXPECT_EQ(names.passes() > 1, room < (size_t{1} << 20)) << room;
    EXPECT_LT(names.bytes(), 2 * room + 4096) << room;
  }
}

TEST_P(SortedNamesTest, AnEmptyDirectoryHasNone) {
  SortedNames names(4096);
  EXPECT_TRUE(all(names).empty());
}

TEST_P(SortedNamesTest, WhatGoesOrComesBetweenPassesComesAtMostOnce) {
  for (int i = 100; i < 200; ++i) make("n" + std::to_string(i));
  const UniqueFd fd = open();
  SortedNames names(400);
  std::vector<std::string> found;
  for (std::string name; names.next(fd.get(), pulse_, &name) == 1;) {
    found.push_back(name);
    fs::remove(root_ / "data/sub" / name);
    write(root_ / "data/sub" / ("a" + name), "");
  }
  EXPECT_EQ(found, std::vector<std::string>(expected_.begin(), expected_.end()));
}

TEST_P(SortedNamesTest, StopsWhenItIsTold) {
  make("a");
  pulse_.stop = true;
  SortedNames names(4096);
  std::string name;
  const UniqueFd fd = open();
  EXPECT_EQ(names.next(fd.get(), pulse_, &name), -1);
  EXPECT_EQ(errno, ECANCELED);
}

INSTANTIATE_TEST_SUITE_P(FileSystems, SortedNamesTest, testing::Values("/tmp", "/dev/shm"));

}  // namespace
}  // namespace sluice::exports
