// One pattern of a filter, compiled: which names does it mean?
//
// The language is the one that rsync(1) describes under "PATTERN MATCHING RULES":
//
//   foo        the last component is foo                 foo/bar   so are the last two
//   /foo       foo at the root of the transfer           foo/      a directory only
//   ?          one byte, not /                           *         any bytes, not /
//   **         any bytes; the pattern may then begin at any component
//   [a-f_]     one byte of these, never /; with ! or ^ in front, of all others; [:alpha:] and such
//   dir/***    the directory and all that is in it
//   \*         the byte itself, but only in a pattern that has one of * ? [ somewhere; else \ means itself
//
// A class that is not closed or has an unknown [:name:], and a wildcard pattern that ends in a lone \, match
// nothing, as they do there. Names are bytes: whatever is above 127 belongs to no [:name:], and ? is one
// byte.
//
// Pure and never changed, so any thread may ask. All ways through a pattern are followed at once, 64 tokens
// at a time, so the dearest question costs the bytes of the name times a 64th of the bytes of the pattern.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "control/selection/tokens.h"

namespace sluice::selection {

inline constexpr size_t kPatternBytesMax = 4096;

class Pattern {
 public:
  // Neither empty nor longer than kPatternBytesMax.
  explicit Pattern(std::string_view text);

  // `path` is relative to the root of the transfer, without a slash at either end.
  bool matches(std::string_view path, bool is_directory) const;

 private:
  // Which part of a path has to match from its first byte to its last.
  enum class Subject : uint8_t {
    kPath,            // all of it
    kPathAfterSlash,  // with a slash before it, so that **/foo means foo at the root, too
    kLastComponents,  // as many as the pattern has
    kAnyComponentOn,  // from any component to the end
  };
  // The tokens that may be next, one bit each; the bit behind the last token is the end of the pattern.
  using Places = std::array<uint64_t, kPatternBytesMax / 64 + 1>;

  void compile(const std::vector<Token>& tokens);
  // False when no way is left.
  bool step(Places& places, uint8_t byte) const;
  bool matches_wildly(std::string_view subject, bool slash_behind) const;

  Subject subject_ = Subject::kPath;
  bool directories_only_ = false;
  bool contents_too_ = false;  // ends in ***
  bool never_ = false;         // is broken, so that it matches nothing
  size_t components_ = 1;      // kLastComponents
  std::string literal_;        // of a pattern without wildcards, which has nothing of what follows
  // Words of 64 tokens, as in Places.
  size_t tokens_ = 0;
  std::vector<uint64_t> stars_;         // * and **
  std::vector<uint64_t> double_stars_;  // **
  // The tokens that are no stars and take a byte. Most bytes are alike to a pattern and share a column.
  std::vector<std::vector<uint64_t>> columns_;
  std::array<uint8_t, 256> column_of_{};
};

}  // namespace sluice::selection
