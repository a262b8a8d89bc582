// SPDX-License-Identifier: Apache-2.0
#include "tools/gfal2/places/place.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "tools/gfal2/places/problem.h"

namespace sluice::gfal {
namespace {

// 0: it is a place.
int refusal_of(const std::string& url) {
  try {
    (void)place_of(url);
    return 0;
  } catch (const Problem& problem) {
    EXPECT_FALSE(std::string_view(problem.what()).empty());
    return problem.reason();
  }
}

TEST(Places, AUrlIsANodeAndAPathThere) {
  const Place place = place_of("sluice://beta/data/a//b/./c.h5");
  EXPECT_EQ(place.node, "beta");
  EXPECT_EQ(place.port, "");
  EXPECT_EQ(place.path, "data/a/b/c.h5");
  EXPECT_FALSE(place.names_directory);
  EXPECT_EQ(place.shown(), "beta:data/a/b/c.h5");
  EXPECT_EQ(place_of("sluice://beta.example:7400/data/").port, "7400");
  EXPECT_TRUE(place_of("sluice://beta/data/").names_directory);
  for (const char* exports : {"sluice://beta", "sluice://beta/", "sluice://beta//"})
    EXPECT_EQ(place_of(exports).path, "") << exports;
}

TEST(Places, EscapesStandForBytesAndAllElseForItself) {
  EXPECT_EQ(place_of("sluice://b/d/a%20b%25%3f%ff").path, "d/a b%?\xff");
  EXPECT_EQ(place_of("sluice://b/d/a b*[x]&;$(y)\xc3\xa9~").path, "d/a b*[x]&;$(y)\xc3\xa9~");
  EXPECT_EQ(place_of("sluice://b/d/..x/...").path, "d/..x/...");
}

TEST(Places, WhatLeadsElsewhereOrIsNoNameIsRefused) {
  EXPECT_EQ(refusal_of("sluice://b/d/../e"), EACCES);
  EXPECT_EQ(refusal_of("sluice://b/d/%2e%2E"), EACCES);
  EXPECT_EQ(refusal_of("sluice://b/.."), EACCES);
  for (const char* url :
       {"sluice://b/d/a%00", "sluice://b/d/a%2fb", "sluice://b/d/%", "sluice://b/d/%4", "sluice://b/d/%zz",
        "sluice://b/d/a?b", "sluice://b/d/a#b", "sluice:///d/a", "sluice://", "sluice://a@b/d/x",
        "sluice://b:x/d", "sluice://b:123456/d", "sluice://%62/d", "file:x", "file://b/x", "file:"})
    EXPECT_EQ(refusal_of(url), EINVAL) << url;
  EXPECT_EQ(refusal_of("http://b/d"), EPROTONOSUPPORT);
  EXPECT_EQ(refusal_of("sluice:/b/d"), EPROTONOSUPPORT);
}

TEST(Places, NamesAndPathsHaveTheLengthsOfLinux) {
  EXPECT_EQ(refusal_of("sluice://b/d/" + std::string(255, 'x')), 0);
  EXPECT_EQ(refusal_of("sluice://b/d/" + std::string(256, 'x')), ENAMETOOLONG);
  std::string url = "sluice://b/d";
  while (url.size() < 4000) url += "/" + std::string(200, 'x');
  EXPECT_EQ(refusal_of(url), 0);
  EXPECT_EQ(refusal_of(url + "/" + std::string(200, 'x')), ENAMETOOLONG);
  EXPECT_EQ(refusal_of("file:///" + std::string(5000, 'x')), ENAMETOOLONG);
}

TEST(Places, FilesOfThisHostHaveNoEscapes) {
  EXPECT_EQ(place_of("file:///tmp/a%20b").path, "/tmp/a%20b");
  EXPECT_EQ(place_of("file:/tmp/a").path, "/tmp/a");
  EXPECT_EQ(place_of("file://localhost/tmp/a").path, "/tmp/a");
  EXPECT_EQ(place_of("file:///tmp/a").node, "");
}

TEST(Places, NamesOfListsLeadBackToTheSameFile) {
  for (const std::string name :
       {"plain", "a b", "100%", "%41", "a?b#c", "caf\xc3\xa9", "\xff\xfe", "new\nline", "~*[]"})
    EXPECT_EQ(place_of("sluice://b/d/" + escaped(name)).path, "d/" + name);
  EXPECT_EQ(escaped("a b\xc3\xa9*"), "a b\xc3\xa9*");
}

TEST(Places, PartsOfPaths) {
  EXPECT_EQ(last_part("data/a/b"), "b");
  EXPECT_EQ(parent_part("data/a/b"), "data/a");
  EXPECT_EQ(last_part("data"), "data");
  EXPECT_EQ(parent_part("data"), "");
}

TEST(Problems, OneCodeOfSluiceIsSeveralReasonsOfTheSystem) {
  EXPECT_EQ(errno_of(7, "/w/a: does not exist; check the name"), ENOENT);
  EXPECT_EQ(errno_of(7, "/w/a: permission denied; give the user ..."), EACCES);
  EXPECT_EQ(errno_of(7, "/w/a: Input/output error"), EIO);
  EXPECT_EQ(errno_of(7, "/w/does not exist: permission denied"), EACCES) << "names stand before";
  EXPECT_EQ(errno_of(16, "directory /w does not exist; make it first, or use --parents"), ENOENT);
  EXPECT_EQ(
      errno_of(2,
               "/w/a: is a directory; to remove it with all that is in it, ask for that (recursive; rm -r)"),
      EISDIR);
  EXPECT_EQ(errno_of(2, "/w/a: is not empty; remove what is in it first"), ENOTEMPTY);
  EXPECT_EQ(errno_of(9, "exists"), EEXIST);
  EXPECT_EQ(errno_of(9, "another transfer writes to /w/x; wait for it"), EBUSY);
  EXPECT_EQ(errno_of(8, "outside"), EACCES);
  EXPECT_EQ(errno_of(99, "of a newer node"), EIO);
}

}  // namespace
}  // namespace sluice::gfal
