// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/run_file.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <sstream>

#include "dataplane/base/arguments/arguments.h"
#include "dataplane/base/config/toml_text.h"
#include "tools/cli/app.h"
#include "tools/cli/format.h"
#include "tools/cli/shell.h"

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
    const arguments::ValueWords value = arguments::value_words(*option);
    keys[key_of(name)] = {.flag = "--" + name,
                          .takes_value = option->get_expected_max() != 0,
                          .repeats = option->get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll,
                          .type = value.name + (value.allowed().empty() ? "" : ": " + value.allowed()),
                          .meaning = option->get_description()};
  }
  return keys;
}

// An option as the command has it, and where it stands in the file.
struct GivenOption {
  Arguments words;  // "--rate", "5G"
  std::string place;
};
using GivenOptions = std::vector<GivenOption>;

Arguments words_of(const GivenOptions& options) {
  Arguments words;
  for (const GivenOption& one : options) words.insert(words.end(), one.words.begin(), one.words.end());
  return words;
}

Status parse_options(const Arguments& words, TransferFlags* flags) {
  CLI::App command;
  command.set_help_flag();
  add_flags(command, *flags);
  std::ostringstream nothing;
  const auto parsed = arguments::parse(command, words, nothing);
  return parsed ? Status() : Status(parsed.error());
}

// Which of these options is the first that makes a wrong command: by its own value, else beside those before.
Error wrong_option(const GivenOptions& options, const Error& of_all) {
  TransferFlags unused;
  for (const GivenOption& one : options) {
    if (one.words.size() == 1) continue;
    const Status alone = parse_options(one.words, &unused);
    if (!alone) return {ErrorCode::kConfiguration, one.place + ": " + alone.error().message};
  }
  GivenOptions so_far;
  for (const GivenOption& one : options) {
    so_far.push_back(one);
    const Status together = parse_options(words_of(so_far), &unused);
    if (!together) return {ErrorCode::kConfiguration, one.place + ": " + together.error().message};
  }
  return of_all;
}

// How a key of the file itself is written, other than times.
std::string_view form_of(std::string_view key) {
  if (key == "together") return "together = true or false";
  if (key == "options") return "a section: [options]";
  if (key == "send") return "a section for each transfer: [[send]]";
  return key == "get" ? "a section for each transfer: [[get]]" : "";
}

class Reader {
 public:
  Reader(const std::string& origin) : origin_(origin), keys_(option_keys()) {}

  Result<RunFile> read(const toml::table& table) {
    RunFile file;
    const toml::table* defaults = nullptr;
    std::vector<std::pair<const toml::table*, Direction>> tables;
    for (const auto& [name, at] : as_written(table)) {
      const std::string& key = name;
      const toml::node& node = *at;
      if (key == "together" && node.is_boolean()) {
        file.together = node.as_boolean()->get();
      } else if (is_run_time(key)) {
        if (Status status = read_time(key, node, &file.times); !status) return status.error();
      } else if (key == "options" && node.is_table()) {
        defaults = node.as_table();
        if (Status status = check_defaults(*defaults); !status) return status.error();
      } else if ((key == "send" || key == "get") && node.is_array_of_tables()) {
        const Direction direction = key == "send" ? Direction::kSend : Direction::kGet;
        for (const toml::node& each : *node.as_array()) tables.emplace_back(each.as_table(), direction);
      } else if (const std::string_view form = form_of(key); !form.empty()) {
        return wrong(node, fmt::format("{}: write {}", key, form));
      } else {
        return wrong(node,
                     fmt::format("{} does not belong here: a file of transfers has together = true or false, "
                                 "retry, not_before, window, every, [options], [[send]] and [[get]]",
                                 printable(key)));
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
  struct Path {
    std::string text;
    std::string place;
  };
  using Paths = std::vector<Path>;

  std::string place(const toml::node& node) const {
    return fmt::format("{}:{}", origin_, static_cast<size_t>(node.source().begin.line));
  }
  Error wrong(const toml::node& node, const std::string& what) const {
    return {ErrorCode::kConfiguration, place(node) + ": " + what};
  }

  Status read_time(const std::string& key, const toml::node& node, RunTimes* times) const {
    std::string value;
    if (const auto* text = node.as_string()) {
      value = text->get();
    } else if (const auto* number = node.as_integer()) {
      value = std::to_string(number->get());
    } else {
      return wrong(node, key + ": write a string or a number");
    }
    const Status set = set_run_time(key, value, times);
    return set ? Status() : Status(wrong(node, set.error().message));
  }

  // Also of what each transfer says otherwise.
  Status check_defaults(const toml::table& defaults) const {
    GivenOptions unused;
    for (const auto& [key, node] : as_written(defaults)) {
      if (key == "sources" || key == "to" || key == "from")
        return wrong(*node, key + ": belongs to one transfer: write it beneath [[send]] or [[get]]");
      if (Status status = add_option(key, *node, &unused); !status) return status;
    }
    return {};
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
    GivenOptions options;
    Paths sources;
    Paths from;
    Path to;
    if (defaults != nullptr) {
      for (const auto& [key, node] : as_written(*defaults)) {
        if (table.contains(key)) continue;
        if (auto status = add_option(key, *node, &options); !status) return status.error();
      }
    }
    for (const auto& [key, node] : as_written(table)) {
      Status status;
      if (key == "sources") {
        status = add_texts(key, *node, &sources);
      } else if (key == "from" && direction == Direction::kGet) {
        status = add_texts(key, *node, &from);
      } else if (key == "to" && node->is_string()) {
        to = {node->as_string()->get(), place(*node)};
      } else if (key == "to") {
        status = wrong(*node, "to: write a string");
      } else {
        status = add_option(key, *node, &options);
      }
      if (!status) return status.error();
    }
    if (sources.empty() || to.text.empty())
      return wrong(table, "a transfer needs sources = [\"...\"] and to = \"...\", as the command has them");
    sources.push_back(std::move(to));
    return parse(table, direction, options, sources, from);
  }

  Status add_texts(const std::string& key, const toml::node& node, Paths* texts) const {
    if (const auto* one = node.as_string()) {
      texts->push_back({one->get(), place(node)});
      return {};
    }
    if (node.is_array() && node.as_array()->is_homogeneous<std::string>()) {
      for (const toml::node& each : *node.as_array())
        texts->push_back({each.as_string()->get(), place(each)});
      return {};
    }
    return wrong(node, key + ": write a string, or an array of strings");
  }

  Status add_option(const std::string& key, const toml::node& node, GivenOptions* options) const {
    const auto found = keys_.find(key);
    if (found == keys_.end())
      return wrong(node, fmt::format("{}: no such key; 'sluice run --reference' lists them", printable(key)));
    const OptionKey& option = found->second;
    if (!option.takes_value) {
      if (!node.is_boolean()) return wrong(node, key + ": write true or false");
      if (node.as_boolean()->get()) options->push_back({{option.flag}, place(node)});
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
                   GivenOptions* options) const {
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
    options->push_back({{option.flag, value}, place(node)});
    return {};
  }

  // As the command itself would.
  Result<RunTransfer> parse(const toml::table& table, Direction direction, const GivenOptions& options,
                            const Paths& paths, const Paths& from) const {
    RunTransfer transfer{
        .direction = direction, .flags = {}, .place = place(table), .command = {}, .places = {}};
    const Arguments words = words_of(options);
    if (const Status parsed = parse_options(words, &transfer.flags); !parsed)
      return wrong_option(options, wrong(table, parsed.error().message));
    for (const GivenOption& one : options) transfer.places.options[one.words.front()] = one.place;
    transfer.command = direction == Direction::kSend ? "sluice send" : "sluice get";
    for (const Path& node : from) {
      transfer.flags.from.push_back(node.text);
      transfer.places.options["--from"] = node.place;
      transfer.command += (&node == &from.front() ? " --from " : ",") + shell_word(node.text);
    }
    for (const std::string& word : words) transfer.command += " " + shell_word(word);
    // On a command line "-" is the standard input; here it is a file.
    const auto typed = [](const Path& path) { return is_standard(path.text) ? "./" + path.text : path.text; };
    if (std::ranges::any_of(paths, [&](const Path& path) { return typed(path).starts_with('-'); }))
      transfer.command += " --";
    for (const Path& path : paths) {
      transfer.flags.paths.push_back(path.text);
      transfer.places.paths.push_back(path.place);
      transfer.command += " " + shell_word(typed(path));
    }
    return transfer;
  }

  const std::string& origin_;
  const OptionKeys keys_;
};

// Of these paths alone, without options.
Status try_paths(const RunTransfer& transfer, const std::vector<std::string>& paths,
                 const std::filesystem::path& working_directory) {
  TransferFlags flags;
  flags.paths = paths;
  flags.from = transfer.flags.from;
  const auto request = transfer_request(transfer.direction, flags, working_directory, nullptr);
  return request ? Status() : Status(request.error());
}

}  // namespace

std::string place_of(const RunTransfer& transfer, const Error& error,
                     const std::filesystem::path& working_directory) {
  if (error.message.starts_with("--")) {
    const auto found =
        transfer.places.options.find(error.message.substr(0, error.message.find_first_of(": ")));
    if (found != transfer.places.options.end()) return found->second;
  }
  const std::vector<std::string>& paths = transfer.flags.paths;
  if (paths.size() != transfer.places.paths.size() || paths.size() < 2) return transfer.place;
  const bool sends = transfer.direction == Direction::kSend;
  const size_t last = paths.size() - 1;
  if (sends && !try_paths(transfer, {"./x", paths[last]}, working_directory))
    return transfer.places.paths[last];
  for (size_t i = 0; i < last; ++i) {
    const std::string& to = sends ? paths[last] : std::string("./x");
    if (!try_paths(transfer, {paths[i], to}, working_directory)) return transfer.places.paths[i];
  }
  if (!sends && !try_paths(transfer, {paths[0], paths[last]}, working_directory))
    return transfer.places.paths[last];
  return transfer.place;
}

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
      "other |\n" +
      run_time_reference() +
      "| `sources` | a string, or an array of strings | what the command takes before its last argument |\n"
      "| `to` | a string | the last argument: `NODE:PATH` of a `send`, a path of this node of a `get` |\n"
      "| `from` | a string, or an array of strings | of a `get`: the nodes that all have its sources, which "
      "are then written without `NODE:` (`--from`) |\n";
  for (const auto& [key, option] : option_keys()) {
    out += fmt::format(
        "| `{}` | {} | {} (`{}`) |\n", key,
        !option.takes_value ? "`true`, `false`" : option.type + (option.repeats ? ", or an array" : ""),
        option.meaning, option.flag);
  }
  return out;
}

}  // namespace sluice::cli
