// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/config/toml_text.h"

#include <algorithm>
#include <span>
#include <string>

namespace sluice::config {
namespace {

constexpr size_t kTextBytesMax = 1U << 20;

Error invalid(std::string_view origin, size_t line, std::string_view words) {
  std::string message = std::string(origin) + ":" + std::to_string(line) + ": not valid TOML: ";
  for (const char c : words) message += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  return {ErrorCode::kConfiguration, message};
}

bool begins_key(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
         c == '"' || c == '\'' || c == ']';
}

// "[.a]" and the like.
bool bad_section_name(std::string_view line) {
  const auto skip_blanks = [&] { line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size())); };
  skip_blanks();
  if (!line.starts_with('[')) return false;
  line.remove_prefix(line.starts_with("[[") ? 2 : 1);
  skip_blanks();
  return line.empty() || !begins_key(line.front());
}

// toml++ 3.3 answers some input with an assertion or with undefined behaviour instead of an error: section
// names that do not begin as a key does, a '}' in an array, characters beyond ASCII outside strings. So it
// never sees the latter: in comments they are blanked, in strings they are to be written as escapes. Tables
// in braces and strings of several lines, which no key here needs, are refused: so each line can be judged
// alone.
std::string_view clean(std::span<char> line) {
  const std::string_view text(line.data(), line.size());
  if (bad_section_name(text))
    return "a section's name must begin with a letter, a digit, '_', '-' or a quote";
  char quote = 0;
  bool comment = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (static_cast<unsigned char>(c) >= 0x80) {
      if (!comment) return "outside comments only ASCII is allowed; in a string write \\u00e9 for U+00E9";
      line[i] = '?';
    } else if (quote != 0) {
      if (c == '\\' && quote == '"' && i + 1 < line.size() && static_cast<unsigned char>(line[i + 1]) < 0x80)
        ++i;
      if (c == quote) quote = 0;
    } else if (!comment && (c == '"' || c == '\'')) {
      if (text.substr(i).starts_with("\"\"\"") || text.substr(i).starts_with("'''"))
        return "strings of several lines are not used here; write it on one line";
      quote = c;
    } else if (c == '#') {
      comment = true;
    } else if (!comment && (c == '{' || c == '}')) {
      return "tables in braces are not used here; write a [section]";
    } else if (!comment && c < ' ' && c != '\t' && (c != '\r' || i + 1 != line.size())) {
      return "control characters are not allowed";
    }
  }
  return "";
}

// What stands before the equals sign of a line.
std::string key_of(std::string_view text, size_t line) {
  for (; line > 1; --line) text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  text = text.substr(0, std::min(text.find('='), text.find('\n')));
  const size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
  return std::string(text.substr(begin, text.find_last_not_of(" \t") + 1 - begin));
}

}  // namespace

Result<toml::table> parse_toml(std::string_view text, std::string_view origin) {
  if (text.size() > kTextBytesMax)
    return Error{ErrorCode::kConfiguration,
                 std::string(origin) + ": longer than 1 MiB; this is no configuration"};
  std::string cleaned(text);
  size_t number = 0;
  for (size_t at = 0; at < cleaned.size();) {
    const size_t end = std::min(cleaned.find('\n', at), cleaned.size());
    ++number;
    if (const auto problem = clean(std::span(cleaned).subspan(at, end - at)); !problem.empty())
      return invalid(origin, number, problem);
    at = end + 1;
  }
  try {
    return toml::parse(cleaned, origin);
  } catch (const toml::parse_error& error) {
    const size_t line = error.source().begin.line;
    std::string words(error.description());
    // It is a number of some key, which takes far smaller ones.
    if (words.find("not representable in 64 bits") != words.npos)
      words = key_of(cleaned, line) +
              ": larger than any number here; docs/REFERENCE.md, Configuration, says what it takes";
    return invalid(origin, line, words);
  }
}

}  // namespace sluice::config
