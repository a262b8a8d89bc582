// SPDX-License-Identifier: Apache-2.0
#include "control/selection/tokens.h"

#include <algorithm>
#include <array>

namespace sluice::selection {
namespace {

struct NamedClass {
  std::string_view name;
  bool (*has)(uint8_t byte);
};

bool is_digit(uint8_t b) { return b >= '0' && b <= '9'; }
bool is_lower(uint8_t b) { return b >= 'a' && b <= 'z'; }
bool is_upper(uint8_t b) { return b >= 'A' && b <= 'Z'; }
bool is_alpha(uint8_t b) { return is_lower(b) || is_upper(b); }
bool is_alnum(uint8_t b) { return is_alpha(b) || is_digit(b); }
bool is_graph(uint8_t b) { return b > ' ' && b < 0x7F; }

// Written out, since those of the C library follow the locale.
constexpr std::array<NamedClass, 12> kNamedClasses{{
    {"alnum", is_alnum},
    {"alpha", is_alpha},
    {"blank", [](uint8_t b) { return b == ' ' || b == '\t'; }},
    {"cntrl", [](uint8_t b) { return b < ' ' || b == 0x7F; }},
    {"digit", is_digit},
    {"graph", is_graph},
    {"lower", is_lower},
    {"print", [](uint8_t b) { return b == ' ' || is_graph(b); }},
    {"punct", [](uint8_t b) { return is_graph(b) && !is_alnum(b); }},
    {"space", [](uint8_t b) { return b == ' ' || (b >= '\t' && b <= '\r'); }},
    {"upper", is_upper},
    {"xdigit", [](uint8_t b) { return is_digit(b) || (b >= 'a' && b <= 'f') || (b >= 'A' && b <= 'F'); }},
}};

// Reads a class from behind its [ to its ].
class ClassParser {
 public:
  ClassParser(std::string_view text, size_t at) : text_(text), at_(at) {}

  size_t at() const { return at_; }

  // Nothing when it is broken.
  std::optional<Bytes> parse() {
    const bool negated = at_ < text_.size() && (text_[at_] == '!' || text_[at_] == '^');
    if (negated) ++at_;
    // A ] that comes first is one of the bytes.
    for (bool first = true; at_ < text_.size(); first = false) {
      if (text_[at_] == ']' && !first) {
        ++at_;
        if (negated) class_.flip();
        class_.reset('/');
        return class_;
      }
      if (!member()) return std::nullopt;
    }
    return std::nullopt;
  }

 private:
  bool member() {
    if (text_[at_] == '-' && range_from_ && at_ + 1 < text_.size() && text_[at_ + 1] != ']') return range();
    if (text_.substr(at_).starts_with("[:")) {
      const size_t close = text_.find(']', at_ + 2);
      if (close == std::string_view::npos) return false;
      // Else it is no [:name:], and the [ one of the bytes.
      if (close > at_ + 2 && text_[close - 1] == ':') return named(close);
    }
    range_from_ = byte();
    if (range_from_) class_.set(*range_from_);
    return range_from_.has_value();
  }

  bool range() {
    ++at_;
    const auto last = byte();
    if (!last) return false;
    for (size_t each = *range_from_; each <= *last; ++each) class_.set(each);
    range_from_.reset();  // in a-c-e the second - is a byte
    return true;
  }

  bool named(size_t close) {
    const std::string_view name = text_.substr(at_ + 2, close - 1 - (at_ + 2));
    const auto* const known = std::ranges::find(kNamedClasses, name, &NamedClass::name);
    if (known == kNamedClasses.end()) return false;
    for (size_t each = 0; each < class_.size(); ++each) {
      if (known->has(static_cast<uint8_t>(each))) class_.set(each);
    }
    at_ = close + 1;
    range_from_.reset();
    return true;
  }

  std::optional<uint8_t> byte() {
    if (text_[at_] == '\\' && ++at_ == text_.size()) return std::nullopt;
    return static_cast<uint8_t>(text_[at_++]);
  }

  std::string_view text_;
  size_t at_;
  Bytes class_;
  std::optional<uint8_t> range_from_;  // the byte before a - that would make a range
};

Bytes all_but_slash() {
  Bytes bytes;
  bytes.set();
  bytes.reset('/');
  return bytes;
}

Token one_byte(char byte) {
  Token token;
  token.takes.set(static_cast<uint8_t>(byte));
  return token;
}

}  // namespace

std::optional<std::vector<Token>> tokens_of(std::string_view text) {
  std::vector<Token> tokens;
  for (size_t at = 0; at < text.size();) {
    const char byte = text[at++];
    if (byte == '*') {
      const size_t behind = std::min(text.find_first_not_of('*', at), text.size());
      tokens.push_back({.takes = behind > at ? Bytes().set() : all_but_slash(), .star = true});
      at = behind;
    } else if (byte == '?') {
      tokens.push_back({.takes = all_but_slash()});
    } else if (byte == '[') {
      ClassParser parser(text, at);
      const auto parsed = parser.parse();
      if (!parsed) return std::nullopt;
      tokens.push_back({.takes = *parsed});
      at = parser.at();
    } else if (byte == '\\') {
      if (at == text.size()) return std::nullopt;
      tokens.push_back(one_byte(text[at++]));
    } else {
      tokens.push_back(one_byte(byte));
    }
  }
  return tokens;
}

}  // namespace sluice::selection
