// A stream that is read to its end, or as far as its disk can.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/read_rest.h"

#include <gtest/gtest.h>

#include <ios>
#include <sstream>
#include <streambuf>

namespace sluice::base {
namespace {

// As a file of which the disk cannot read what is behind the first bytes.
class Damaged : public std::streambuf {
 public:
  Damaged() { setg(readable_, readable_, readable_ + sizeof readable_ - 1); }

 protected:
  int_type underflow() override { throw std::ios_base::failure("the disk cannot read this"); }

 private:
  char readable_[9] = "readable";
};

TEST(ReadRest, IsAllThatComes) {
  const std::string long_text(200'000, 'x');
  std::istringstream in("first " + long_text);
  std::string word;
  in >> word;
  EXPECT_EQ(read_rest(in), " " + long_text);
  EXPECT_FALSE(in.bad());
  std::istringstream empty;
  EXPECT_EQ(read_rest(empty), "");
  EXPECT_FALSE(empty.bad());
}

TEST(ReadRest, TellsThatThereIsMoreThanCanBeRead) {
  Damaged disk;
  std::istream in(&disk);
  (void)read_rest(in);
  EXPECT_TRUE(in.bad());
}

}  // namespace
}  // namespace sluice::base
