// Lists of files with their digests, as other programs write them: the lines of sha256sum, md5sum and b3sum
// (also with escaped names, and with --tag), the manifests of BagIt (RFC 8493), and hashdeep's.
//
// Pure. A list comes from outside: whatever is in it, a line is an entry, nothing, or an error. Names are as
// the list has them; whether they may be opened, check.h says.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/digests/named.h"

namespace sluice::manifest {

using digests::Kind;
using digests::kind_named;
using digests::kind_names;
using digests::kKinds;
using digests::Value;

inline constexpr size_t kLineBytesMax = 64U << 10;

enum class Format : uint8_t { kSum, kTag, kBagit, kHashdeep };
std::string_view name_of(Format format);  // "sum", "tag", "bagit", "hashdeep"
std::optional<Format> format_named(std::string_view name);

// "manifest-sha256.txt" and "tagmanifest-sha256.txt": the kind that stands between.
std::optional<Kind> kind_of_bag(std::string_view list_name);

struct Entry {
  std::string name;
  std::optional<uint64_t> size_bytes;
  std::vector<Value> values;  // one at least
  uint64_t line = 0;
};

// The kinds of digests for a list of this name: those of `wished` (--digest); if it is empty, the one that
// the name says, else sha256. kUsage: a reader who goes by the name would take the digests for others.
Result<std::vector<Kind>> kinds_to_write(const std::string& wished, std::string_view list_name);

// Reads the lines of one list, in order.
class ListReader {
 public:
  // `list_name` is for messages, and tells a manifest of BagIt by its usual name. `kind`: of values whose
  // line does not say it.
  ListReader(std::string list_name, std::optional<Kind> kind);

  // A line without its line feed. Nothing: it has no entry. kUsage: it is no line of such a list.
  Result<std::optional<Entry>> line(std::string_view text);
  // The list's name says of which kind its digests are.
  bool name_tells() const { return kind_of_name_.has_value(); }
  // What the list turned out to be.
  Format format() const { return format_; }

 private:
  Error bad(const std::string& what) const;
  Result<std::optional<Entry>> tagged(std::string_view text, bool escaped);
  Result<std::optional<Entry>> plain(std::string_view text, bool escaped);
  Result<std::optional<Entry>> hashdeep(std::string_view text);
  Result<std::optional<Entry>> columns(std::string_view text);
  Result<Value> value(std::optional<Kind> kind, std::string_view hex) const;
  Result<Kind> kind_of_length(size_t digits) const;
  Result<std::string> name(std::string_view text, bool escaped) const;

  const std::string list_name_;
  const std::optional<Kind> kind_;
  Format format_ = Format::kSum;
  std::optional<Kind> kind_of_name_;  // what the list's name says
  uint64_t lines_ = 0;
  bool carriage_returns_ = false;
  std::vector<std::optional<Kind>> columns_;  // of hashdeep, behind the size
};

// What stands before the entries: the text of whole lines, or nothing.
std::string head_of(Format format, const std::vector<Kind>& kinds);
// kUsage: a list of this format and name cannot have such a name, so that it is read back.
Status check_name(Format format, std::string_view list_name, std::string_view name);
// The lines of an entry. kUsage: as check_name().
Result<std::string> lines_of(Format format, std::string_view list_name, const Entry& entry);
// kUsage: this format does not have such digests, or not so many.
Status check_format(Format format, const std::vector<Kind>& kinds);

}  // namespace sluice::manifest
