// The options of a transfer: one type for what a transfer was asked to do, for what node.toml says of those
// that do not say it, and for what a caller says; and the table that tells everything else of each option
// (options.def).
//
// Pure. Rates are bit/s, times nanoseconds since 1970. A value of an option is also a whole number: of a
// switch 0 or 1, of an enumeration the place of its word, of a fraction millionths. So whoever moves options
// between two forms needs no line for each of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "dataplane/base/error.h"
#include "dataplane/core/wire.h"

namespace sluice::options {

// The words of an enumeration, in the order of its values.
template <typename Enumeration>
inline constexpr std::array<std::string_view, 0> kWords{};

// As node.toml has switches.
template <>
inline constexpr auto kWords<bool> = std::to_array<std::string_view>({"no", "yes"});

#define SLUICE_WORDS(type, ...) \
  template <>                   \
  inline constexpr auto kWords<type> = std::to_array<std::string_view>({__VA_ARGS__});
#define SLUICE_VALUES(...) \
  { __VA_ARGS__ }
#define SLUICE_ENUMERATION(type, values, ...)     \
  enum class type : uint8_t SLUICE_VALUES values; \
  SLUICE_WORDS(type, __VA_ARGS__)
#include "dataplane/base/options/options.def"
#undef SLUICE_VALUES

template <typename Enumeration>
constexpr std::string_view word_of(Enumeration value) {
  const auto at = static_cast<size_t>(value);
  return at < kWords<Enumeration>.size() ? kWords<Enumeration>[at] : "unknown";
}
template <typename Enumeration>
constexpr std::optional<Enumeration> of_word(std::string_view word) {
  for (size_t at = 0; at < kWords<Enumeration>.size(); ++at) {
    if (kWords<Enumeration>[at] == word) return static_cast<Enumeration>(at);
  }
  return std::nullopt;
}

struct Fraction {
  uint32_t ppm = 0;
  bool operator==(const Fraction&) const = default;
};

// What a transfer was asked to do, with the node's defaults filled in. What a node.toml says is one as well.
struct Options {
#define SLUICE_OPTION(name, type, fallback, ...) type name = fallback;
#include "dataplane/base/options/options.def"
  bool operator==(const Options&) const = default;
};

// What a caller asks for; nothing: the node decides.
struct Wish {
#define SLUICE_OPTION(name, type, fallback, ...) std::optional<type> name;
#include "dataplane/base/options/options.def"
};

enum class Kind : uint8_t {
  kByType,   // kSwitch of a bool, kChoice of an enumeration, kText of a string, else kNumber
  kSwitch,   // it is there, or it is not
  kNumber,   // whole
  kRate,     // "2.5G" bit/s
  kSize,     // "8KiB"
  kPercent,  // of a Fraction
  kMoment,   // when: a span, a time of the day, or a date
  kChoice,   // a word of an enumeration
  kText,
  kRule,  // of names; may be given again and again, and the order counts
};

// What a row of options.def says. Nothing of it is needed but `help`.
struct Words {
  std::string_view flag;   // "-n,--dry-run"; empty: another option says it
  std::string_view value;  // what the flag takes, for people: "RATE"
  Kind kind = Kind::kByType;
  double least = 0;            // as people say it: percent, not millionths
  double most = 0;             // 0: all that the type holds. Of a rate: in node.toml alone
  uint32_t step = 1;           // it is a multiple of this
  std::string_view or_switch;  // instead of a value this word, which sets the option `switched`
  std::string_view switched;
  std::string_view needs;     // another flag
  std::string_view excludes;  // likewise
  bool in_files = true;       // it is a key of `sluice run` as well
  std::string_view help;      // of --help; a line
  std::string_view text;      // of docs/REFERENCE.md; empty: `help`
  std::string_view
      operators;  // members of [control] users_group are refused it, and told this; empty: they are not
  std::string_view key;      // in [transfer]; empty: the option's name
  std::string_view unit;     // of that key, for people
  std::string_view allowed;  // for it: of the words these; empty: all
  std::string_view meaning;  // of it
};

enum class Of : uint8_t { kTransfer, kKept, kCommand };

struct Option : Words {
  std::string_view name;
  Of of = Of::kTransfer;
  bool configured = false;  // it has a key in [transfer]
  std::span<const std::string_view> choices;
  // Of kTransfer.
  int64_t (*value_in)(const Options&) = nullptr;
  void (*set_value)(Options&, int64_t) = nullptr;
  std::optional<int64_t> (*wish_in)(const Wish&) = nullptr;
  void (*set_wish)(Wish&, int64_t) = nullptr;

  std::string_view config_key() const { return key.empty() ? name : key; }
  std::string_view long_flag() const;  // "--dry-run"; empty: there is none
  // "use adaptive, fixed or cubic"
  std::string remedy() const;
  // kUsage names the option, or the flag, what was found, and what is possible.
  Result<int64_t> of_word(std::string_view word, std::string_view shown_name) const;
  Status check(int64_t number, std::string_view shown_name) const;
  // The nearest that is possible, or what counts without the option.
  int64_t clamp(int64_t number) const;
};

// All rows, in the order of options.def.
std::span<const Option> all();
const Option* find(std::string_view name);

// `defaults`, and over them what the wish says. kUsage: out of what is possible.
Result<Options> fill_in(const Wish& wish, const Options& defaults);

// The table that docs/REFERENCE.md has between <!-- options-reference-begin --> and <!--
// options-reference-end -->.
std::string reference_markdown();

}  // namespace sluice::options
