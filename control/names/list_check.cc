// SPDX-License-Identifier: Apache-2.0
#include "control/names/list_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "dataplane/base/text.h"

namespace sluice::names {
namespace {

Error lie(std::string_view what, const std::string& path) {
  return {ErrorCode::kIncompatible, fmt::format("the peer's list {} (\"{}\"): it is no list, and was cut off",
                                                what, base::printable(path, 100))};
}

}  // namespace

ListCheck::ListCheck(const List& asked) : asked_(asked), granted_(asked.pages) {
  if (asked_.glob) pattern_ = split_pattern(asked_.path);
}

// As deep as was asked for, and of a pattern each component fits.
bool ListCheck::asked_for(const std::string& path) const {
  size_t depth = 0;
  for (std::string_view rest = path;; ++depth) {
    const size_t slash = rest.find('/');
    if (depth < pattern_.parts.size() && !matches(pattern_.parts[depth], rest.substr(0, slash))) return false;
    if (slash == std::string_view::npos) break;
    rest.remove_prefix(slash + 1);
  }
  const size_t wanted = asked_.glob ? pattern_.parts.size() : 1;
  return depth + 1 == wanted || (depth + 1 > wanted && asked_.recursive);
}

Status ListCheck::check(const Entry& entry) const {
  if (alone_) return lie("goes on after what was asked for", entry.path);
  if (entry.path.empty()) {
    // What is in a directory was asked for, unless it could not be looked at.
    const bool itself = asked_.itself || entry.type != Type::kDirectory || entry.error_code != 0;
    return entries_ == 0 && itself && !asked_.glob ? Status()
                                                   : lie("has an entry without a name", entry.path);
  }
  if (asked_.itself) return lie("has more than what was asked for", entry.path);
  if (entries_ != 0 && compare_paths(last_, entry.path) >= 0) return lie("is not in order", entry.path);
  // A directory on the way to a match is told of where it could not be read.
  const bool on_the_way = asked_.glob && entry.error_code != 0;
  if (!on_the_way && !asked_for(entry.path)) return lie("has what was not asked for", entry.path);
  if (entries_ == kEntriesMax) return lie("does not end", entry.path);
  return {};
}

Status ListCheck::take(const Page& page) {
  if (++pages_ > granted_) return lie("comes faster than it was let come", last_);
  for (const Entry& entry : page.entries) {
    if (Status status = check(entry); !status) return status;
    alone_ = entry.path.empty();
    last_ = entry.path;
    ++entries_;
    failed_ += entry.error_code != 0 ? 1 : 0;
  }
  return {};
}

Status ListCheck::end(const Done& done) {
  if (done.entries == entries_ && done.failed == failed_) return {};
  return Error{
      ErrorCode::kIncompatible,
      fmt::format("the peer says that its list has {} entries, {} of them with errors; {} and {} came",
                  done.entries, done.failed, entries_, failed_)};
}

bool ListCheck::used() {
  ++used_;
  const uint64_t wanted = used_ + asked_.pages;
  // Not with each page: a word for several.
  if (wanted - granted_ < std::max<uint64_t>(asked_.pages / 4, 1)) return false;
  granted_ = wanted;
  return true;
}

}  // namespace sluice::names
