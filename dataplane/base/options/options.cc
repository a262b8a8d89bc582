// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/options/options.h"

#include <algorithm>
#include <type_traits>

#include "dataplane/base/text.h"

namespace sluice::options {
namespace {

template <typename T>
constexpr int64_t number_of(const T& value) {
  if constexpr (std::is_same_v<T, Fraction>) {
    return value.ppm;
  } else {
    return static_cast<int64_t>(value);
  }
}

template <typename T>
constexpr T value_of(int64_t number) {
  if constexpr (std::is_same_v<T, Fraction>) {
    return {.ppm = static_cast<uint32_t>(number)};
  } else {
    return static_cast<T>(number);
  }
}

template <typename T>
constexpr Kind kind_of() {
  if (std::is_same_v<T, bool>) return Kind::kSwitch;
  if (std::is_same_v<T, std::string>) return Kind::kText;
  return std::is_enum_v<T> ? Kind::kChoice : Kind::kNumber;
}

template <typename T>
constexpr Option row(std::string_view name, Of of, Words words) {
  if (words.kind == Kind::kByType) words.kind = kind_of<T>();
  Option option{words};
  option.name = name;
  option.of = of;
  option.choices = kWords<T>;
  return option;
}

template <auto kValue, auto kWish, typename T>
constexpr Option transfer_row(std::string_view name, bool configured, const Words& words) {
  Option option = row<T>(name, Of::kTransfer, words);
  option.configured = configured;
  option.value_in = [](const Options& options) { return number_of(options.*kValue); };
  option.set_value = [](Options& options, int64_t number) { options.*kValue = value_of<T>(number); };
  option.wish_in = [](const Wish& wish) {
    return wish.*kWish ? std::optional(number_of(*(wish.*kWish))) : std::nullopt;
  };
  option.set_wish = [](Wish& wish, int64_t number) { wish.*kWish = value_of<T>(number); };
  return option;
}

constexpr Option rule_row(std::string_view name, Words words) {
  words.kind = Kind::kRule;
  return row<std::string>(name, Of::kCommand, words);
}

constexpr Option kOptions[] = {
#define SLUICE_OPTION(name, type, fallback, ...) \
  transfer_row<&Options::name, &Wish::name, type>(#name, false, {__VA_ARGS__}),
#define SLUICE_CONFIGURED(name, type, fallback, ...) \
  transfer_row<&Options::name, &Wish::name, type>(#name, true, {__VA_ARGS__}),
#define SLUICE_KEEP(name, ...) row<bool>(#name, Of::kKept, {__VA_ARGS__}),
#define SLUICE_RULE(name, ...) rule_row(#name, {__VA_ARGS__}),
#define SLUICE_COMMAND(name, type, ...) row<type>(#name, Of::kCommand, {__VA_ARGS__}),
#include "dataplane/base/options/options.def"
};

Error wrong(std::string_view shown_name, const std::string& value, const std::string& why) {
  return {ErrorCode::kUsage, std::string(shown_name) + " = " + value + ": " + why};
}

// As people say it: 2.5 percent are 25000 millionths.
double human(const Option& option, int64_t number) {
  return static_cast<double>(number) / (option.kind == Kind::kPercent ? 1e4 : 1);
}

std::string plain(double number) {
  std::string text = std::to_string(number);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

// "`--lanes N`", "`-n`, `--dry-run`"
std::string shown_flags(const Option& option) {
  std::string text = "`";
  for (const char c : option.flag) c == ',' ? text += "`, `" : text += c;
  if (!option.value.empty()) text += " " + std::string(option.value);
  return text + "`";
}

}  // namespace

std::span<const Option> all() { return kOptions; }

const Option* find(std::string_view name) {
  for (const Option& option : kOptions) {
    if (option.name == name) return &option;
  }
  return nullptr;
}

std::string_view Option::long_flag() const {
  const size_t at = flag.find("--");
  return at == std::string_view::npos ? std::string_view() : flag.substr(at);
}

std::string Option::remedy() const {
  std::string words = "use ";
  for (size_t i = 0; i < choices.size(); ++i)
    words += (i == 0 ? "" : i + 1 == choices.size() ? " or " : ", ") + std::string(choices[i]);
  return words;
}

Result<int64_t> Option::of_word(std::string_view word, std::string_view shown_name) const {
  for (size_t at = 0; at < choices.size(); ++at) {
    if (choices[at] == word) return static_cast<int64_t>(at);
  }
  return wrong(shown_name, "\"" + base::printable(word) + "\"", remedy());
}

Status Option::check(int64_t number, std::string_view shown_name) const {
  // Of a rate the ports know the most.
  if (kind == Kind::kRate && static_cast<double>(static_cast<uint64_t>(number)) >= least) return {};
  if (kind == Kind::kRate)
    return wrong(shown_name, plain(human(*this, number)) + " bit/s",
                 plain(least / 1e3) + " kbit/s is the least; give a unit, as in 10M or 10G");
  if (most == 0 && least == 0) return {};
  const double given = human(*this, number);
  if (most == 0 && given >= least) return {};
  if (most == 0) return wrong(shown_name, plain(given), plain(least) + " is the least");
  if (given >= least && given <= most && number % step == 0) return {};
  const std::string range = plain(least) + " to " + plain(most) + (kind == Kind::kPercent ? " percent" : "");
  return wrong(shown_name, plain(given),
               step == 1 ? range + " are possible" : "a multiple of " + std::to_string(step) + ", " + range);
}

int64_t Option::clamp(int64_t number) const {
  if (most == 0 || kind == Kind::kRate) return number;
  const double units = kind == Kind::kPercent ? 1e4 : 1;
  const int64_t lowest = std::min(static_cast<int64_t>(least * units), value_in(Options()));
  return std::clamp(number, lowest, static_cast<int64_t>(most * units));
}

Result<Options> fill_in(const Wish& wish, const Options& defaults) {
  Options options = defaults;
  for (const Option& option : kOptions) {
    if (option.of != Of::kTransfer) continue;
    const std::optional<int64_t> number = option.wish_in(wish);
    if (!number) continue;
    if (const Status status = option.check(*number, option.name); !status) return status.error();
    option.set_value(options, *number);
  }
  return options;
}

std::string reference_markdown() {
  std::string out = "| option | meaning |\n| --- | --- |\n";
  for (const Option& option : kOptions) {
    if (option.flag.empty()) continue;
    out += "| " + shown_flags(option) + " | " + std::string(option.text.empty() ? option.help : option.text) +
           " |\n";
  }
  return out;
}

}  // namespace sluice::options
