// SPDX-License-Identifier: Apache-2.0
#include "tools/manifest/list.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "control/digests/kind.h"
#include "dataplane/base/text.h"

namespace sluice::manifest {
namespace {

constexpr std::string_view kHexDigits = "0123456789abcdefABCDEF";
constexpr std::string_view kBlanks = " \t";
constexpr std::string_view kHashdeepHead = "%%%% HASHDEEP-";
constexpr std::string_view kHashdeepColumns = "%%%% size,";

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

std::optional<Kind> kind_in_name(std::string_view list_name) {
  const std::string name = lower(list_name.substr(list_name.rfind('/') + 1));
  for (const Kind kind : kKinds) {
    if (name.find(name_of(kind)) != std::string::npos) return kind;
  }
  const bool of_b3sum = name.starts_with("b3sum") || name.ends_with(".b3") || name.ends_with(".b3sum");
  return of_b3sum ? std::optional(Kind::kBlake3) : std::nullopt;
}

// As sha256sum and b3sum write it behind a backslash. Nothing: it is not so written.
std::optional<std::string> unescaped(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    if (++i == text.size()) return std::nullopt;
    if (text[i] != 'n' && text[i] != 'r' && text[i] != '\\') return std::nullopt;
    out += text[i] == 'n' ? '\n' : text[i] == 'r' ? '\r' : '\\';
  }
  return out;
}

// RFC 8493, 2.1.3: these three alone are encoded, so that a percent sign of an older bag means itself.
std::string percent_decoded(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string code = lower(text.substr(i, 3));
    const char c = code == "%0a" ? '\n' : code == "%0d" ? '\r' : code == "%25" ? '%' : '\0';
    out += c == '\0' ? text[i] : c;
    if (c != '\0') i += 2;
  }
  return out;
}

}  // namespace

std::string_view name_of(Format format) {
  constexpr std::string_view kNames[] = {"sum", "tag", "bagit", "hashdeep"};
  return kNames[static_cast<size_t>(format)];
}

std::optional<Format> format_named(std::string_view name) {
  for (const Format format : {Format::kSum, Format::kTag, Format::kBagit, Format::kHashdeep}) {
    if (name_of(format) == name) return format;
  }
  return std::nullopt;
}

std::optional<Kind> kind_of_bag(std::string_view list_name) {
  std::string_view name = list_name.substr(list_name.rfind('/') + 1);
  if (name.starts_with("tag")) name.remove_prefix(3);
  if (!name.starts_with("manifest-") || !name.ends_with(".txt")) return std::nullopt;
  name.remove_prefix(9);
  name.remove_suffix(4);
  return kind_named(name);
}

ListReader::ListReader(std::string list_name, std::optional<Kind> kind)
    : list_name_(std::move(list_name)), kind_(kind), kind_of_name_(kind_in_name(list_name_)) {
  if (const std::optional<Kind> of_bag = kind_of_bag(list_name_)) {
    format_ = Format::kBagit;
    kind_of_name_ = of_bag;
  }
}

Error ListReader::bad(const std::string& what) const {
  return {ErrorCode::kUsage, base::printable(list_name_) + ":" + std::to_string(lines_) + ": " + what};
}

Result<std::optional<Entry>> ListReader::line(std::string_view text) {
  ++lines_;
  if (text.size() > kLineBytesMax) return bad("a line of more than 64 KiB; is this a list of digests?");
  if (lines_ == 1 && text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  if (lines_ == 1) carriage_returns_ = text.ends_with('\r');
  if (carriage_returns_ && text.ends_with('\r')) text.remove_suffix(1);
  if (text.find('\0') != std::string_view::npos)
    return bad("a NUL byte; give a list whose lines end with line feeds (not sha256sum --zero)");
  if (lines_ == 1 && text.starts_with(kHashdeepHead)) {
    format_ = Format::kHashdeep;
    return std::optional<Entry>();
  }
  if (format_ == Format::kHashdeep) return hashdeep(text);
  if (text.empty() || (text.front() == '#' && format_ != Format::kBagit)) return std::optional<Entry>();
  const bool escaped = text.front() == '\\' && format_ != Format::kBagit;
  if (escaped) text.remove_prefix(1);
  const size_t digits = std::min(text.find_first_not_of(kHexDigits), text.size());
  const bool is_plain = digits >= hex_digits_of(Kind::kAdler32) && digits < text.size() &&
                        kBlanks.find(text[digits]) != std::string_view::npos;
  if (is_plain || format_ == Format::kBagit) return plain(text, escaped);
  return tagged(text, escaped);
}

// "SHA256 (name) = hex", and OpenSSL's "SHA2-256(name)= hex". A name may have parentheses.
Result<std::optional<Entry>> ListReader::tagged(std::string_view text, bool escaped) {
  const size_t open = text.find('(');
  const size_t close = text.rfind(')');
  const std::string what =
      "neither 'DIGEST  NAME' nor 'KIND (NAME) = DIGEST'; is this a list of sha256sum, md5sum, b3sum, BagIt "
      "or hashdeep?";
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return bad(what);
  std::string_view word = text.substr(0, open);
  while (word.ends_with(' ')) word.remove_suffix(1);
  std::string_view hex = text.substr(close + 1);
  const size_t begin = hex.find_first_not_of(" =");
  if (word.empty() || begin == std::string_view::npos) return bad(what);
  const std::optional<Kind> kind = kind_named(word);
  if (!kind) return bad("digest '" + base::printable(word, 40) + "' is not known; known are " + kind_names());
  const Result<Value> found = value(kind, hex.substr(begin));
  if (!found) return found.error();
  const Result<std::string> named = name(text.substr(open + 1, close - open - 1), escaped);
  if (!named) return named.error();
  format_ = Format::kTag;
  return std::optional(Entry{*named, {}, {*found}, lines_});
}

// "hex  name" and "hex *name"; of BagIt with any blanks between.
Result<std::optional<Entry>> ListReader::plain(std::string_view text, bool escaped) {
  const size_t digits = std::min(text.find_first_not_of(kHexDigits), text.size());
  std::string_view rest = text.substr(digits);
  if (rest.empty() || kBlanks.find(rest.front()) == std::string_view::npos)
    return bad("not 'DIGEST  NAME'; is this a list of digests?");
  if (format_ == Format::kBagit) {
    rest.remove_prefix(std::min(rest.find_first_not_of(kBlanks), rest.size()));
    if (rest.starts_with('*')) rest.remove_prefix(1);
  } else {
    rest.remove_prefix(1);
    // The mark of text or binary; lists of very old programs have none.
    if (rest.starts_with(' ') || rest.starts_with('*')) rest.remove_prefix(1);
  }
  const Result<Value> found = value(std::nullopt, text.substr(0, digits));
  if (!found) return found.error();
  const Result<std::string> named = name(rest, escaped);
  if (!named) return named.error();
  return std::optional(Entry{*named, {}, {*found}, lines_});
}

Result<std::optional<Entry>> ListReader::hashdeep(std::string_view text) {
  if (text.starts_with(kHashdeepColumns)) return columns(text.substr(kHashdeepColumns.size()));
  if (text.empty() || text.starts_with('#')) return std::optional<Entry>();
  if (columns_.empty()) return bad("an entry before the line '%%%% size,...,filename' that says what it has");
  Entry entry;
  entry.line = lines_;
  size_t comma = text.find(',');
  uint64_t size = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + std::min(comma, text.size()), size);
  if (comma == std::string_view::npos || parsed.ec != std::errc() || parsed.ptr != text.data() + comma)
    return bad("begins with no size in bytes");
  entry.size_bytes = size;
  for (const std::optional<Kind>& kind : columns_) {
    text.remove_prefix(comma + 1);
    comma = text.find(',');
    if (comma == std::string_view::npos) return bad("has fewer columns than its head says");
    if (!kind) continue;
    const Result<Value> found = value(kind, text.substr(0, comma));
    if (!found) return found.error();
    entry.values.push_back(*found);
  }
  const Result<std::string> named = name(text.substr(comma + 1), false);
  if (!named) return named.error();
  entry.name = *named;
  return std::optional(entry);
}

Result<std::optional<Entry>> ListReader::columns(std::string_view text) {
  columns_.clear();
  bool one_known = false;
  for (size_t comma = text.find(','); comma != std::string_view::npos; comma = text.find(',')) {
    columns_.push_back(kind_named(text.substr(0, comma)));
    one_known = one_known || columns_.back();
    text.remove_prefix(comma + 1);
  }
  if (text != "filename") return bad("the last column is not 'filename'");
  if (!one_known) return bad("none of its digests is known; known are " + kind_names());
  return std::optional<Entry>();
}

Result<Value> ListReader::value(std::optional<Kind> kind, std::string_view hex) const {
  if (hex.find_first_not_of(kHexDigits) != std::string_view::npos)
    return bad("'" + base::printable(hex, 40) + "' is no digest in hex");
  if (!kind) {
    const Result<Kind> found = kind_of_length(hex.size());
    if (!found) return found.error();
    kind = *found;
  }
  if (hex.size() != hex_digits_of(*kind))
    return bad("a digest of " + std::to_string(hex.size()) + " hex digits; " + std::string(name_of(*kind)) +
               " has " + std::to_string(hex_digits_of(*kind)));
  return Value{*kind, lower(hex)};
}

Result<Kind> ListReader::kind_of_length(size_t digits) const {
  if (kind_) return *kind_;
  if (kind_of_name_ && (format_ == Format::kBagit || hex_digits_of(*kind_of_name_) == digits))
    return *kind_of_name_;
  for (const Kind kind : {Kind::kCrc64, Kind::kMd5, Kind::kSha1, Kind::kSha256, Kind::kSha512}) {
    if (hex_digits_of(kind) == digits) return kind;
  }
  if (digits == hex_digits_of(Kind::kAdler32))
    return bad("a digest of 8 hex digits may be adler32 or crc32c: say which with --digest");
  return bad("a digest of " + std::to_string(digits) + " hex digits is not known; known are " + kind_names());
}

Result<std::string> ListReader::name(std::string_view text, bool escaped) const {
  if (text.empty()) return bad("has no name");
  if (format_ == Format::kBagit) return percent_decoded(text);
  if (!escaped) return std::string(text);
  const std::optional<std::string> plain_name = unescaped(text);
  if (!plain_name) return bad("its name has a backslash before something else than n, r and a backslash");
  return *plain_name;
}

Result<std::vector<Kind>> kinds_to_write(const std::string& wished, std::string_view list_name) {
  const std::optional<Kind> named = kind_in_name(list_name);
  if (wished.empty()) return std::vector{named.value_or(Kind::kSha256)};
  Result<std::vector<Kind>> kinds = digests::parse_kinds(wished);
  if (!kinds) return Error{kinds.error().code, "--digest: " + kinds.error().message};
  if (!named || kinds->size() != 1 || kinds->front() == *named) return kinds;
  // A reader tells digests of another length from those that the name says, but not in a bag.
  if (!kind_of_bag(list_name) && hex_digits_of(kinds->front()) != hex_digits_of(*named)) return kinds;
  return Error{ErrorCode::kUsage, fmt::format("--digest {}: '{}' is the name of a list of {}; choose another",
                                              wished, base::printable(list_name), name_of(*named))};
}

}  // namespace sluice::manifest
