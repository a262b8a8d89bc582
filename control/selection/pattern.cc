// SPDX-License-Identifier: Apache-2.0
#include "control/selection/pattern.h"

#include <algorithm>
#include <map>
#include <optional>

namespace sluice::selection {
namespace {

// The end of the path that has so many components; nothing when there are fewer.
std::optional<std::string_view> last_components(std::string_view path, size_t count) {
  size_t begin = path.size();
  for (; count > 0; --count) {
    if (begin == 0) return std::nullopt;
    const size_t slash = path.rfind('/', begin - 1);
    begin = slash == std::string_view::npos ? 0 : slash;
  }
  return path.substr(begin > 0 ? begin + 1 : 0);
}

void set_bit(std::vector<uint64_t>& words, size_t bit) { words[bit / 64] |= uint64_t{1} << (bit % 64); }

}  // namespace

Pattern::Pattern(std::string_view text) {
  if (text.size() > 1 && text.ends_with('/')) {
    directories_only_ = true;
    text.remove_suffix(1);
  }
  const bool anchored = text.starts_with('/');
  if (anchored) text.remove_prefix(1);
  contents_too_ = text.ends_with("***");
  if (anchored) {
    subject_ = Subject::kPath;
  } else if (text.starts_with("**")) {
    subject_ = Subject::kPathAfterSlash;
  } else if (text.find("**") != std::string_view::npos) {
    subject_ = Subject::kAnyComponentOn;
  } else {
    subject_ = Subject::kLastComponents;
    components_ = 1 + static_cast<size_t>(std::ranges::count(text, '/'));
  }
  if (text.find_first_of("*?[") == std::string_view::npos) {
    literal_ = text;
    never_ = text.empty();  // the root itself, which is no name in the tree
  } else if (const auto tokens = tokens_of(text)) {
    compile(*tokens);
  } else {
    never_ = true;
  }
}

void Pattern::compile(const std::vector<Token>& tokens) {
  tokens_ = tokens.size();
  const std::vector<uint64_t> none(tokens_ / 64 + 1);
  stars_ = double_stars_ = none;
  for (size_t token = 0; token < tokens_; ++token) {
    if (tokens[token].star) set_bit(stars_, token);
    if (tokens[token].star && tokens[token].takes.test('/')) set_bit(double_stars_, token);
  }
  std::map<std::vector<uint64_t>, uint8_t> known;
  for (size_t byte = 0; byte < column_of_.size(); ++byte) {
    auto column = none;
    for (size_t token = 0; token < tokens_; ++token) {
      if (!tokens[token].star && tokens[token].takes.test(byte)) set_bit(column, token);
    }
    const auto [it, is_new] = known.try_emplace(column, static_cast<uint8_t>(known.size()));
    column_of_[byte] = it->second;
    if (is_new) columns_.push_back(std::move(column));
  }
}

bool Pattern::matches(std::string_view path, bool is_directory) const {
  if (never_ || (directories_only_ && !is_directory)) return false;
  if (subject_ == Subject::kLastComponents) {
    const auto last = last_components(path, components_);
    if (!last) return false;
    path = *last;
  }
  if (tokens_ == 0) return path == literal_;
  return matches_wildly(path, contents_too_ && is_directory);
}

bool Pattern::step(Places& places, uint8_t byte) const {
  const auto& takers = columns_[column_of_[byte]];
  const auto& stayers = byte == '/' ? double_stars_ : stars_;
  uint64_t any = 0;
  uint64_t from_taker = 0;  // what goes from one word into the next
  uint64_t from_star = 0;
  for (size_t word = 0; word < takers.size(); ++word) {
    const uint64_t taken = places[word] & takers[word];
    uint64_t next = (places[word] & stayers[word]) | taken << 1 | from_taker;
    from_taker = taken >> 63;
    // A star may stand for nothing, so what follows it may be next as well; it is no star itself.
    const uint64_t stars = next & stars_[word];
    next |= stars << 1 | from_star;
    from_star = stars >> 63;
    places[word] = next;
    any |= next;
  }
  return any != 0;
}

bool Pattern::matches_wildly(std::string_view subject, bool slash_behind) const {
  Places places;
  std::fill_n(places.begin(), stars_.size(), 0);  // the rest is never looked at
  const uint64_t begin = 1 | (stars_[0] & 1) << 1;
  places[0] = begin;
  if (subject_ == Subject::kPathAfterSlash) step(places, '/');
  for (const char each : subject) {
    const bool open = step(places, static_cast<uint8_t>(each));
    if (subject_ == Subject::kAnyComponentOn) {
      if (each == '/') places[0] |= begin;
    } else if (!open) {
      return false;
    }
  }
  const auto at_end = [&] { return (places[tokens_ / 64] >> (tokens_ % 64) & 1) != 0; };
  if (at_end()) return true;
  if (!slash_behind) return false;
  step(places, '/');
  return at_end();
}

}  // namespace sluice::selection
