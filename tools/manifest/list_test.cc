// SPDX-License-Identifier: Apache-2.0
#include "tools/manifest/list.h"

#include <gtest/gtest.h>

namespace sluice::manifest {
namespace {

const std::string kMd5Hex(32, 'a');
const std::string kSha256Hex(64, 'b');

std::vector<Entry> entries(ListReader& reader, const std::vector<std::string>& lines) {
  std::vector<Entry> all;
  for (const std::string& line : lines) {
    auto entry = reader.line(line);
    EXPECT_TRUE(entry) << entry.error().message;
    if (entry && *entry) all.push_back(**entry);
  }
  return all;
}
std::vector<Entry> entries(const std::string& name, const std::vector<std::string>& lines,
                           std::optional<Kind> kind = {}) {
  ListReader reader(name, kind);
  return entries(reader, lines);
}
std::string problem(const std::string& name, const std::vector<std::string>& lines) {
  ListReader reader(name, {});
  for (const std::string& line : lines) {
    const auto entry = reader.line(line);
    if (!entry) return entry.error().message;
  }
  return "";
}

TEST(List, OfSha256sumInTextAndBinary) {
  const auto all = entries("SUMS", {kSha256Hex + "  a/b c", kSha256Hex + " *d", "", "# a comment"});
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].name, "a/b c");
  EXPECT_EQ(all[0].values[0].kind, Kind::kSha256);
  EXPECT_EQ(all[1].name, "d");
  EXPECT_EQ(all[1].line, 2U);
}

TEST(List, IsOfTheKindThatItsNameSays) {
  const auto kind = [](const std::string& wished, const std::string& name) {
    const auto kinds = kinds_to_write(wished, name);
    return kinds ? std::string(name_of(kinds->front())) : kinds.error().message;
  };
  EXPECT_EQ(kind("", "bag/manifest-md5.txt"), "md5");
  EXPECT_EQ(kind("", "x.b3"), "blake3");
  EXPECT_EQ(kind("", "md5/run.sums"), "sha256");
  EXPECT_EQ(kind("md5", "run.sums"), "md5");
  EXPECT_EQ(kind("sha256", "run.md5"), "sha256") << "longer ones are told from those";
  EXPECT_NE(kind("sha256", "x.b3").find("choose another"), std::string::npos);
  EXPECT_NE(kind("sha256", "manifest-md5.txt").find("choose another"), std::string::npos);
  EXPECT_FALSE(kinds_to_write("sha3", "x"));
}

TEST(List, EscapedNames) {
  const auto all = entries("SUMS", {"\\" + kMd5Hex + "  a\\nb\\\\c\\rd", kMd5Hex + "  a\\nb"});
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].name, "a\nb\\c\rd");
  EXPECT_EQ(all[1].name, "a\\nb") << "no backslash before the line: it means itself";
  EXPECT_NE(problem("SUMS", {"\\" + kMd5Hex + "  a\\tb"}).find("SUMS:1: "), std::string::npos);
}

TEST(List, Tagged) {
  const auto all = entries("x", {"SHA256 (a (1).h5) = " + kSha256Hex, "MD5(b)= " + kMd5Hex,
                                 "\\BLAKE3 (c\\nd) = " + kSha256Hex, "SHA2-256(e)= " + kSha256Hex});
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[0].name, "a (1).h5");
  EXPECT_EQ(all[1].values[0].kind, Kind::kMd5);
  EXPECT_EQ(all[2].name, "c\nd");
  EXPECT_EQ(all[2].values[0].kind, Kind::kBlake3);
  EXPECT_EQ(all[3].values[0].kind, Kind::kSha256);
  EXPECT_NE(problem("x", {"BLAKE2b (a) = " + kSha256Hex}).find("'BLAKE2b' is not known"), std::string::npos);
}

TEST(List, TheKindOfADigestByItsListOrItsLength) {
  EXPECT_EQ(entries("run.b3", {kSha256Hex + "  a"})[0].values[0].kind, Kind::kBlake3);
  EXPECT_EQ(entries("web3.txt", {kSha256Hex + "  a"})[0].values[0].kind, Kind::kSha256);
  EXPECT_EQ(entries("x", {kSha256Hex + "  a"}, Kind::kBlake3)[0].values[0].kind, Kind::kBlake3);
  EXPECT_EQ(entries("x.adler32", {"11e60398  a"})[0].values[0].kind, Kind::kAdler32);
  EXPECT_EQ(entries("x", {"995DC9BBDF1939FA  a"})[0].values[0].hex, "995dc9bbdf1939fa");
  EXPECT_NE(problem("x", {"11e60398  a"}).find("--digest"), std::string::npos);
  EXPECT_NE(problem("x", {std::string(60, '0') + "  a"}).find("60 hex digits"), std::string::npos);
  ListReader reader("x", Kind::kSha512);
  EXPECT_FALSE(reader.line(kSha256Hex + "  a")) << "sha512 is longer";
}

TEST(List, OfABag) {
  const auto all = entries("/bag/manifest-sha256.txt", {kSha256Hex + "  data/a%0Ab%0d%25",
                                                        kSha256Hex + "\t*data/100%", kSha256Hex + " #x"});
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].name, "data/a\nb\r%");
  EXPECT_EQ(all[1].name, "data/100%");
  EXPECT_EQ(all[2].name, "#x");
  EXPECT_NE(problem("manifest-md5.txt", {kSha256Hex + "  data/a"}).find("md5 has 32"), std::string::npos);
}

TEST(List, OfHashdeep) {
  ListReader reader("x", {});
  const auto all =
      entries(reader, {"%%%% HASHDEEP-1.0", "%%%% size,md5,tiger,sha256,filename", "## Invoked from: /srv",
                       "12," + kMd5Hex + ",0f0f," + kSha256Hex + ",/srv/a,b"});
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].name, "/srv/a,b");
  EXPECT_EQ(all[0].size_bytes, 12U);
  ASSERT_EQ(all[0].values.size(), 2U);
  EXPECT_EQ(all[0].values[1].kind, Kind::kSha256);
  EXPECT_EQ(reader.format(), Format::kHashdeep);
  const std::string head = "%%%% HASHDEEP-1.0";
  EXPECT_NE(problem("x", {head, "%%%% size,tiger,filename"}), "");
  EXPECT_NE(problem("x", {head, "1," + kMd5Hex + ",a"}), "") << "no columns yet";
  EXPECT_NE(problem("x", {head, "%%%% size,md5,filename", "-1," + kMd5Hex + ",a"}), "");
  EXPECT_NE(problem("x", {head, "%%%% size,md5,filename", "1," + kMd5Hex}), "");
}

TEST(List, LinesThatAreNone) {
  for (const std::string& line :
       std::vector<std::string>{"hello", kSha256Hex, kSha256Hex + "  ", "() = " + kSha256Hex,
                                "SHA256 (a) = ", "SHA256 () = " + kSha256Hex, std::string("x\0y", 3), "\\",
                                ")(", std::string(kLineBytesMax + 1, 'a')})
    EXPECT_EQ(problem("x", {line}).find("x:1: "), 0U) << line.substr(0, 80);
}

TEST(List, OfWindows) {
  const auto all = entries("x", {"\xEF\xBB\xBF" + kMd5Hex + " *a\r", kMd5Hex + " *b\r"});
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].name, "a");
  EXPECT_EQ(all[1].name, "b");
}

TEST(List, WhatIsWrittenIsReadTheSame) {
  const std::vector<std::string> names = {"a",   "b c",     "d\\e", "f\ng\rh", "%0A",
                                          "i,j", "(k) = l", " m",   "*n",      "\xff"};
  for (const Format format : {Format::kSum, Format::kTag, Format::kBagit, Format::kHashdeep}) {
    const std::string list_name = format == Format::kBagit ? "manifest-sha256.txt" : "x";
    ListReader reader(list_name, {});
    std::vector<std::string> lines;
    std::string text = head_of(format, {Kind::kSha256});
    std::vector<std::string> written;
    for (const std::string& plain : names) {
      const std::string name = format == Format::kBagit ? "data/" + plain : plain;
      const auto line = lines_of(format, list_name, {name, 3, {{Kind::kSha256, kSha256Hex}}, 0});
      EXPECT_EQ(static_cast<bool>(line), format != Format::kHashdeep || name != "f\ng\rh");
      if (!line) continue;
      text += *line;
      written.push_back(name);
    }
    for (size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
      lines.push_back(text.substr(at, end - at));
    const auto all = entries(reader, lines);
    ASSERT_EQ(all.size(), written.size()) << name_of(format);
    for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i].name, written[i]) << name_of(format);
    EXPECT_EQ(reader.format(), format);
  }
  // Of a bag's manifest that is not called so a reader cannot know that its names are encoded.
  for (const char* name : {"data/a\nb", "data/a\rb", "data/%0A"})
    EXPECT_FALSE(check_name(Format::kBagit, "dir/run.bagit", name)) << name;
  EXPECT_TRUE(check_name(Format::kBagit, "dir/run.bagit", "data/ a"));
  EXPECT_TRUE(check_name(Format::kBagit, "dir/manifest-md5.txt", "data/a\nb"));
  EXPECT_FALSE(check_format(Format::kSum, {Kind::kMd5, Kind::kSha256}));
  EXPECT_FALSE(check_format(Format::kHashdeep, {Kind::kBlake3}));
  EXPECT_TRUE(check_format(Format::kTag, {Kind::kBlake3, Kind::kSha256}));
}

}  // namespace
}  // namespace sluice::manifest
