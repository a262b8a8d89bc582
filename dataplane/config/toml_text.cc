// SPDX-License-Identifier: Apache-2.0
#include "dataplane/config/toml_text.h"

#include <algorithm>
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

// What toml++ 3.3 answers with an assertion or with undefined behaviour instead of an error: section names
// that do not begin as a key does, and characters beyond ASCII outside strings and comments. Strings of
// several lines, which no key here needs, are refused as well: so each line can be judged alone.
std::string_view problem_of(std::string_view line) {
  if (bad_section_name(line))
    return "a section's name must begin with a letter, a digit, '_', '-' or a quote";
  char quote = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != 0) {
      if (c == '\\' && quote == '"') ++i;
      if (c == quote) quote = 0;
      continue;
    }
    if (c == '#') break;
    if (static_cast<unsigned char>(c) >= 0x7f) return "only ASCII is allowed outside strings and comments";
    if (c != '"' && c != '\'') continue;
    if (line.substr(i).starts_with("\"\"\"") || line.substr(i).starts_with("'''"))
      return "strings of several lines are not used here; write it on one line";
    quote = c;
  }
  return "";
}

}  // namespace

Result<toml::table> parse_toml(std::string_view text, std::string_view origin) {
  if (text.size() > kTextBytesMax)
    return Error{ErrorCode::kConfiguration,
                 std::string(origin) + ": longer than 1 MiB; this is no configuration"};
  size_t number = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t end = rest.find('\n');
    ++number;
    if (const auto problem = problem_of(rest.substr(0, end)); !problem.empty())
      return invalid(origin, number, problem);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  toml::parse_result parsed = toml::parse(text, origin);
  if (!parsed) return invalid(origin, parsed.error().source().begin.line, parsed.error().description());
  return std::move(parsed).table();
}

}  // namespace sluice::config
