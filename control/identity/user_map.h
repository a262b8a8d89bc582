// Who of a peer's users is which user of this host, as an operator's file says it ([control] users_map_file):
// a line "USER@NODE LOCAL" for each, as grid-mapfiles have it. USER and NODE are patterns of
// control/names/glob.h; without USER the line is about the operators of NODE. LOCAL is a user of this host,
// `*` for the one with the same name, or `deny`. The first line that fits counts.
//
// parse() and judge() are pure. load() blocks. Any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dataplane/base/error.h"

namespace sluice::identity {

class UserMap {
 public:
  static constexpr size_t kBytesMax = 1U << 20;
  static constexpr size_t kLinesMax = 20'000;  // that say something: each is tried for each call

  // kConfiguration: a line that cannot be used, with `origin`, its number, the reason and the remedy. Then no
  // line counts: a deny that is misspelt must not let anybody in.
  static Result<UserMap> parse(std::string_view text, const std::string& origin);
  // kConfiguration: as parse(), or it cannot be read, is too long, or others than its owner may write it.
  // kResources: not just now.
  static Result<std::shared_ptr<const UserMap>> load(const std::filesystem::path& file);

  enum class Answer : uint8_t {
    kAsToday,  // no line is about them: as the peer itself
    kLocal,    // as `local`
    kDenied,   // by line `line`; 0: no line lets this user of a node in that has lines
  };
  struct Verdict {
    Answer answer = Answer::kAsToday;
    std::string local = {};
    size_t line = 0;
    bool operator==(const Verdict&) const = default;
  };
  // `user` empty: an operator of that node. Where a line names the node, a user whom none fits is refused; an
  // operator is as today.
  Verdict judge(std::string_view node, std::string_view user) const;
  bool has_lines_for(std::string_view node) const;
  size_t lines() const { return lines_.size(); }
  // Users of this host whom a line names, with the number of the first such line, in the order of the lines.
  std::vector<std::pair<std::string, size_t>> named_here() const;
  const std::string& origin() const { return origin_; }

 private:
  struct Line {
    size_t number = 0;
    std::string user;  // pattern; empty: operators
    std::string node;  // pattern
    std::string local;
  };
  std::string origin_;
  std::vector<Line> lines_;
};

}  // namespace sluice::identity
