// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/config/values.h"

#include <algorithm>

namespace sluice::config {
namespace {

constexpr size_t kCoresMax = 16;

std::string_view type_words(ValueType type) {
  switch (type) {
    case ValueType::kText:
    case ValueType::kChoice:
      return "must be a string in double quotes";
    case ValueType::kInteger:
      return "must be a whole number";
    case ValueType::kSize:
      return "must be a size, such as \"64MiB\" or a number of bytes";
    case ValueType::kRate:
      return "must be a rate, such as \"10G\" or a number of bit/s";
    case ValueType::kCores:
      return "must be an array of CPU numbers, such as [2, 3]";
    case ValueType::kPeers:
      return "must be an array of names of peers, such as [\"beta\", \"gamma:r\"]";
  }
  return "";
}

Error wrong(std::string message) { return {ErrorCode::kConfiguration, std::move(message)}; }

Error wrong_type(const Key& key) {
  return wrong(in_section(key.section, key.name) + ": " + std::string(type_words(key.type)));
}

Error wrong_value(const Key& key, std::string_view value, std::string_view problem) {
  return wrong(in_section(key.section, key.name) + " = " + std::string(value) + ": " + std::string(problem));
}

std::string allowed_numbers(const Key& key) {
  std::string words = allowed_values(key);
  std::erase(words, '`');
  return "must be " + words + (key.unit.empty() ? "" : " " + std::string(key.unit));
}

}  // namespace

std::string printable(std::string_view text) {
  constexpr size_t kShown = 60;
  return toml_string(text.substr(0, kShown)) + (text.size() > kShown ? "..." : "");
}

Result<std::string> text_value(const Key& key, const toml::node& value) {
  const auto* text = value.as_string();
  if (text == nullptr) return wrong_type(key);
  const std::string& given = text->get();
  if (key.type == ValueType::kChoice) {
    const std::string known = " " + std::string(key.choices) + " ";
    const bool one_word = !given.empty() && given.find(' ') == std::string::npos;
    if (!one_word || known.find(" " + given + " ") == std::string::npos) {
      std::string words = allowed_values(key);
      std::replace(words.begin(), words.end(), '`', '"');
      return wrong_value(key, printable(given), "must be one of " + words);
    }
  }
  const std::string_view problem = key.text_problem ? key.text_problem(given) : "";
  if (!problem.empty()) return wrong_value(key, printable(given), problem);
  return given;
}

Result<uint64_t> number_value(const Key& key, const toml::node& value) {
  uint64_t number = 0;
  std::string shown;
  if (const auto* integer = value.as_integer()) {
    shown = std::to_string(integer->get());
    if (integer->get() < 0) return wrong_value(key, shown, "must be " + allowed_values(key));
    number = static_cast<uint64_t>(integer->get());
  } else if (const auto* text = value.as_string(); text != nullptr && key.type != ValueType::kInteger) {
    shown = printable(text->get());
    const auto parsed = key.type == ValueType::kRate ? parse_rate(text->get()) : parse_size(text->get());
    if (!parsed) return wrong_value(key, shown, type_words(key.type));
    number = *parsed;
  } else {
    return wrong_type(key);
  }
  if (number < key.min || number > key.max) return wrong_value(key, shown, allowed_numbers(key));
  const auto* option = std::get_if<const options::Option*>(&key.field);
  if (option != nullptr && number != 0 && !(*option)->check(static_cast<int64_t>(number), key.name))
    return wrong_value(key, shown, allowed_numbers(key));
  const std::string_view problem = key.number_problem ? key.number_problem(number) : "";
  if (!problem.empty()) return wrong_value(key, shown, problem);
  return number;
}

Result<std::vector<int>> cores_value(const Key& key, const toml::node& value) {
  const std::string where = in_section(key.section, key.name) + ": ";
  const toml::array* array = value.as_array();
  if (array == nullptr) return wrong_type(key);
  std::vector<int> cores;
  for (const toml::node& element : *array) {
    const auto* number = element.as_integer();
    if (number == nullptr) return wrong_type(key);
    if (number->get() < 0 || number->get() > static_cast<int64_t>(key.max))
      return wrong(where + "CPU numbers must be 0.." + std::to_string(key.max));
    const int core = static_cast<int>(number->get());
    if (std::find(cores.begin(), cores.end(), core) != cores.end())
      return wrong(where + "CPU " + std::to_string(core) + " is listed twice; each worker needs its own");
    if (cores.size() == kCoresMax) return wrong(where + "more CPUs than the 16 workers that are possible");
    cores.push_back(core);
  }
  return cores;
}

Result<std::vector<ExportPeer>> peers_value(const Key& key, const toml::node& value) {
  const toml::array* array = value.as_array();
  if (array == nullptr || !(array->empty() || array->is_homogeneous<std::string>())) return wrong_type(key);
  std::vector<ExportPeer> peers;
  for (const toml::node& element : *array) {
    const std::string& text = element.as_string()->get();
    std::optional<ExportPeer> peer = ExportPeer::parse(text);
    if (!peer) return wrong_value(key, printable(text), "must be the name of a peer, or NAME:MODE");
    peers.push_back(std::move(*peer));
  }
  return peers;
}

std::filesystem::path normal(const std::filesystem::path& path) {
  const std::filesystem::path clean = path.lexically_normal();
  return clean.has_filename() || clean == clean.root_path() ? clean : clean.parent_path();
}

}  // namespace sluice::config
