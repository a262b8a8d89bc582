// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/path.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sluice::base {
namespace {

TEST(Paths, ADirectoryComesBeforeWhatIsInIt) {
  const std::vector<std::string> ordered = {"A",   "a",  "a/b", "a/b/c", "a/c", "a!",
                                            "a-b", "ab", "b",   "\x80",  "\xff"};
  for (size_t i = 0; i < ordered.size(); ++i) {
    for (size_t j = 0; j < ordered.size(); ++j)
      EXPECT_EQ(compare_paths(ordered[i], ordered[j]), i <=> j) << ordered[i] << " and " << ordered[j];
  }
}

TEST(Paths, ADirectoryArrivesUnderItsNameAndWithASlashWithoutIt) {
  for (const char* path : {"data/run", "/data/run", "/run"}) EXPECT_EQ(arriving_name(path), "run") << path;
  for (const char* path : {"data", "data/", "data/run/", "data/run/.", "/", "", "."})
    EXPECT_EQ(arriving_name(path), "") << path;
  EXPECT_EQ(arriving_name("data/..."), "...");
}

}  // namespace
}  // namespace sluice::base
