// SPDX-License-Identifier: Apache-2.0
#include "control/names/glob.h"

#include <optional>

namespace sluice::names {
namespace {

constexpr std::string_view kWildcards = "*?[";

bool has_wildcard(std::string_view component) {
  for (size_t i = 0; i < component.size(); ++i) {
    if (component[i] == '\\') {
      ++i;
    } else if (kWildcards.find(component[i]) != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

std::string without_escapes(std::string_view component) {
  std::string plain;
  for (size_t i = 0; i < component.size(); ++i) {
    if (component[i] == '\\' && i + 1 < component.size()) ++i;
    plain += component[i];
  }
  return plain;
}

struct One {
  size_t length = 0;  // of the pattern that stands for this one byte
  bool fits = false;
};

// A byte of a set at `at`, with its backslash; moves on. Nothing: the pattern ends.
std::optional<unsigned char> member(std::string_view pattern, size_t& at) {
  if (at < pattern.size() && pattern[at] == '\\') ++at;
  if (at >= pattern.size()) return std::nullopt;
  return static_cast<unsigned char>(pattern[at++]);
}

// The set that `pattern` begins with; nothing if it does not end. A `]` at its beginning is one of it.
std::optional<One> set(std::string_view pattern, unsigned char byte) {
  size_t at = 1;
  const bool negated = at < pattern.size() && (pattern[at] == '!' || pattern[at] == '^');
  if (negated) ++at;
  bool found = false;
  for (bool first = true; at < pattern.size() && (first || pattern[at] != ']'); first = false) {
    const auto low = member(pattern, at);
    auto high = low;
    if (at + 1 < pattern.size() && pattern[at] == '-' && pattern[at + 1] != ']') high = member(pattern, ++at);
    if (!low || !high) return std::nullopt;
    found = found || (*low <= byte && byte <= *high);
  }
  if (at >= pattern.size()) return std::nullopt;
  return One{.length = at + 1, .fits = found != negated};
}

// What the pattern, which does not begin with a `*`, says of the next byte.
One next(std::string_view pattern, char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (pattern[0] == '?') return {.length = 1, .fits = true};
  if (pattern[0] == '[') {
    if (const auto one = set(pattern, byte)) return *one;
  }
  const bool escaped = pattern[0] == '\\' && pattern.size() > 1;
  return {.length = escaped ? 2U : 1U, .fits = pattern[escaped ? 1 : 0] == c};
}

}  // namespace

bool is_pattern(std::string_view path) { return path.find_first_of(kWildcards) != std::string_view::npos; }

// Where it does not fit, the last `*` takes one byte more: those before it need not be tried again.
bool matches(std::string_view pattern, std::string_view name) {
  size_t at = 0;
  size_t taken = 0;
  size_t star = std::string_view::npos;
  size_t star_taken = 0;
  while (taken < name.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = ++at;
      star_taken = taken;
      continue;
    }
    const One one = at < pattern.size() ? next(pattern.substr(at), name[taken]) : One{};
    if (one.fits) {
      at += one.length;
      ++taken;
      continue;
    }
    if (star == std::string_view::npos) return false;
    at = star;
    taken = ++star_taken;
  }
  while (at < pattern.size() && pattern[at] == '*') ++at;
  return at == pattern.size();
}

Pattern split_pattern(std::string_view path) {
  Pattern result;
  if (path.starts_with('/')) result.base += '/';
  while (!path.empty()) {
    const size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
    if (part.empty()) continue;
    const bool last = path.find_first_not_of('/') == std::string_view::npos;
    if (!result.parts.empty() || last || has_wildcard(part)) {
      result.parts.emplace_back(part);
    } else {
      if (!result.base.empty() && !result.base.ends_with('/')) result.base += '/';
      result.base += without_escapes(part);
    }
  }
  return result;
}

}  // namespace sluice::names
