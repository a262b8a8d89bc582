// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/run_file.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>

#include "dataplane/base/config/toml_text.h"
#include "tools/cli/format.h"

namespace sluice::cli {
namespace {

using Arguments = std::vector<std::string>;

struct OptionKey {
  std::string flag;  // "--min-rate"
  bool takes_value = true;
  bool repeats = false;  // an array of values, too
  std::string type;
  std::string meaning;
};
using OptionKeys = std::map<std::string, OptionKey>;

std::string key_of(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// Those that `send` and `get` have in common.
OptionKeys option_keys() {
  TransferFlags flags;
  CLI::App command;
  command.set_help_flag();
  add_flags(command, flags);
  OptionKeys keys;
  for (const CLI::Option* const option : command.get_options()) {
    const std::string& name = option->get_lnames().front();
    keys[key_of(name)] = {.flag = "--" + name,
                          .takes_value = option->get_expected_max() != 0,
                          .repeats = option->get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll,
                          .type = option->get_type_name(),
                          .meaning = option->get_description()};
  }
  return keys;
}

std::string shell_word(const std::string& word) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_./:,+=@%").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  std::string quoted = "'";
  for (const char c : printable(word)) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

class Reader {
 public:
  Reader(const std::string& origin) : origin_(origin), keys_(option_keys()) {}

  Result<RunFile> read(const toml::table& table) {
    RunFile file;
    const toml::table* defaults = nullptr;
    std::vector<std::pair<const toml::table*, Direction>> tables;
    for (const auto& [key, node] : table) {
      if (key.str() == "together" && node.is_boolean()) {
        file.together = node.as_boolean()->get();
      } else if (key.str() == "options" && node.is_table()) {
        defaults = node.as_table();
      } else if ((key.str() == "send" || key.str() == "get") && node.is_array_of_tables()) {
        const Direction direction = key.str() == "send" ? Direction::kSend : Direction::kGet;
        for (const toml::node& each : *node.as_array()) tables.emplace_back(each.as_table(), direction);
      } else {
        return wrong(node,
                     fmt::format("{} does not belong here: a file of transfers has together = true or false, "
                                 "[options], [[send]] and [[get]]",
                                 printable(key.str())));
      }
    }
    if (tables.empty())
      return Error{ErrorCode::kConfiguration, origin_ + ": no transfer: write [[send]] or [[get]]"};
    std::sort(tables.begin(), tables.end(), [](const auto& a, const auto& b) {
      return a.first->source().begin.line < b.first->source().begin.line;
    });
    for (const auto& [each, direction] : tables) {
      auto transfer = read_transfer(*each, direction, defaults);
      if (!transfer) return transfer.error();
      file.transfers.push_back(std::move(*transfer));
    }
    return file;
  }

 private:
  std::string place(const toml::node& node) const {
    return fmt::format("{}:{}", origin_, static_cast<size_t>(node.source().begin.line));
  }
  Error wrong(const toml::node& node, const std::string& what) const {
    return {ErrorCode::kConfiguration, place(node) + ": " + what};
  }

  // In the order of the file: that of rules counts.
  static std::vector<std::pair<std::string, const toml::node*>> as_written(const toml::table& table) {
    std::vector<std::pair<std::string, const toml::node*>> keys;
    for (const auto& [key, node] : table) keys.emplace_back(key.str(), &node);
    std::sort(keys.begin(), keys.end(), [](const auto& a, const auto& b) {
      return a.second->source().begin < b.second->source().begin;
    });
    return keys;
  }

  Result<RunTransfer> read_transfer(const toml::table& table, Direction direction,
                                    const toml::table* defaults) const {
    Arguments options, sources;
    std::string to;
    if (defaults != nullptr) {
      for (const auto& [key, node] : as_written(*defaults)) {
        if (table.contains(key)) continue;
        if (auto status = add_option(key, *node, &options); !status) return status.error();
      }
    }
    for (const auto& [key, node] : as_written(table)) {
      Status status;
      if (key == "sources") {
        status = add_sources(*node, &sources);
      } else if (key == "to" && node->is_string()) {
        to = node->as_string()->get();
      } else {
        status = add_option(key, *node, &options);
      }
      if (!status) return status.error();
    }
    if (sources.empty() || to.empty())
      return wrong(table, "a transfer needs sources = [\"...\"] and to = \"...\", as the command has them");
    return parse(table, direction, options, sources, to);
  }

  Status add_sources(const toml::node& node, Arguments* sources) const {
    if (const auto* one = node.as_string()) {
      sources->push_back(one->get());
      return {};
    }
    if (node.is_array() && node.as_array()->is_homogeneous<std::string>()) {
      for (const toml::node& each : *node.as_array()) sources->push_back(each.as_string()->get());
      return {};
    }
    return wrong(node, "sources: write a string, or an array of strings");
  }

  Status add_option(const std::string& key, const toml::node& node, Arguments* options) const {
    const auto found = keys_.find(key);
    if (found == keys_.end())
      return wrong(node, fmt::format("{}: no such key; 'sluice run --reference' lists them", printable(key)));
    const OptionKey& option = found->second;
    if (!option.takes_value) {
      if (!node.is_boolean()) return wrong(node, key + ": write true or false");
      if (node.as_boolean()->get()) options->push_back(option.flag);
      return {};
    }
    if (option.repeats && node.is_array()) {
      for (const toml::node& each : *node.as_array()) {
        if (Status status = add_value(key, option, each, options); !status) return status;
      }
      return {};
    }
    return add_value(key, option, node, options);
  }

  Status add_value(const std::string& key, const OptionKey& option, const toml::node& node,
                   Arguments* options) const {
    std::string value;
    if (const auto* text = node.as_string()) {
      value = text->get();
    } else if (const auto* whole = node.as_integer()) {
      value = std::to_string(whole->get());
    } else if (const auto* number = node.as_floating_point()) {
      value = fmt::format("{}", number->get());
    } else {
      return wrong(node, key + ": write a string or a number");
    }
    // In one word: a value may begin with a hyphen.
    if (option.repeats) {
      options->push_back(option.flag + "=" + value);
    } else {
      options->insert(options->end(), {option.flag, value});
    }
    return {};
  }

  // As the command itself would.
  Result<RunTransfer> parse(const toml::table& table, Direction direction, const Arguments& options,
                            const Arguments& sources, const std::string& to) const {
    RunTransfer transfer{.direction = direction, .flags = {}, .place = place(table), .command = {}};
    CLI::App command;
    command.set_help_flag();
    add_flags(command, transfer.flags);
    Arguments reversed(options.rbegin(), options.rend());
    try {
      command.parse(reversed);
    } catch (const CLI::ParseError& error) {
      return Error{ErrorCode::kConfiguration, transfer.place + ": " + error.what()};
    }
    transfer.flags.paths = sources;
    transfer.flags.paths.push_back(to);
    transfer.command = direction == Direction::kSend ? "sluice send" : "sluice get";
    for (const std::string& word : options) transfer.command += " " + shell_word(word);
    for (const std::string& word : transfer.flags.paths) transfer.command += " " + shell_word(word);
    return transfer;
  }

  const std::string& origin_;
  const OptionKeys keys_;
};

}  // namespace

Result<RunFile> parse_run_file(std::string_view text, const std::string& origin) {
  const auto table = config::parse_toml(text, origin);
  if (!table) return table.error();
  return Reader(origin).read(*table);
}

std::string run_file_reference() {
  std::string out =
      "| key | value | meaning |\n| --- | --- | --- |\n"
      "| `together` | `true`, `false` | at the top: up to 64 transfers at a time (the default), or one after "
      "the "
      "other |\n"
      "| `sources` | a string, or an array of strings | what the command takes before its last argument |\n"
      "| `to` | a string | the last argument: `NODE:PATH` of a `send`, a path of this node of a `get` |\n";
  for (const auto& [key, option] : option_keys()) {
    out += fmt::format(
        "| `{}` | {} | {} (`{}`) |\n", key,
        !option.takes_value ? "`true`, `false`" : option.type + (option.repeats ? ", or an array" : ""),
        option.meaning, option.flag);
  }
  return out;
}

}  // namespace sluice::cli
