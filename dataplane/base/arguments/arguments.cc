// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/arguments/arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <iostream>
#include <memory>
#include <numeric>
#include <utility>

#include "dataplane/base/text.h"

namespace sluice::arguments {
namespace {

using Words = std::vector<std::string>;

constexpr char kPlaceholder = '\x01';  // before the number of a value

std::string in_quotes(std::string_view text) { return "'" + base::printable(text) + "'"; }

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

// Divides words into commands, options and values, and writes them down so that CLI11 can read them only in
// this way: each value is a placeholder, which is no option, no command, no list and no sign of CLI11's.
class Divider {
 public:
  explicit Divider(const CLI::App& app) : chain_{&app} {}

  Status divide(const Words& words) {
    bool options = true;
    for (size_t at = 0; at < words.size(); ++at) {
      const std::string& word = words[at];
      Status status;
      if (options && word == "--") {
        options = false;
      } else if (options && word.starts_with("--")) {
        status = long_option(words, at);
      } else if (options && is_short_option(word)) {
        status = short_options(words, at);
      } else {
        status = operand(word);
      }
      if (!status) return status;
    }
    return {};
  }

  const CLI::App& app() const { return *chain_.back(); }

  // "sluice node init"; empty where the program has no name.
  std::string command() const {
    std::string name;
    for (const CLI::App* app : chain_) name += (name.empty() ? "" : " ") + app->get_name();
    return name;
  }
  Words divided() const { return divided_; }
  Words values() const { return values_; }

 private:
  static Error wrong(const std::string& what) { return {ErrorCode::kUsage, what}; }

  // The innermost command that knows it decides.
  template <typename Knows>
  const CLI::Option* find(const Knows& knows) const {
    for (auto app = chain_.rbegin(); app != chain_.rend(); ++app) {
      for (const CLI::Option* option : (*app)->get_options()) {
        if (knows(*option)) return option;
      }
    }
    return nullptr;
  }
  const CLI::Option* find_short(char letter) const {
    return find([name = std::string(1, letter)](const CLI::Option& o) { return o.check_sname(name); });
  }

  // A lone hyphen is an operand, and so is a negative number.
  bool is_short_option(const std::string& word) const {
    if (word.size() < 2 || word[0] != '-') return false;
    const bool digit = word[1] >= '0' && word[1] <= '9';
    return !digit || find_short(word[1]) != nullptr;
  }

  Status long_option(const Words& words, size_t& at) {
    const std::string& word = words[at];
    const size_t equals = word.find('=');
    const std::string name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
    const CLI::Option* const option =
        find([&name](const CLI::Option& one) { return !name.empty() && one.check_lname(name); });
    if (option == nullptr) return no_option("--" + name);
    if (!takes_value(*option)) {
      if (equals != std::string::npos) return wrong("--" + name + " takes no value");
      divided_.push_back("--" + name);
      return {};
    }
    if (equals != std::string::npos) return value(*option, "--" + name, word.substr(equals + 1));
    return next_value(*option, "--" + name, words, at);
  }

  Status short_options(const Words& words, size_t& at) {
    const std::string& word = words[at];
    for (size_t i = 1; i < word.size(); ++i) {
      const std::string name = std::string("-") + word[i];
      const CLI::Option* const option = find_short(word[i]);
      if (option == nullptr) return no_option(word);
      if (!takes_value(*option)) {
        divided_.push_back(name);
        continue;
      }
      if (i + 1 < word.size()) return value(*option, name, word.substr(i + 1));
      return next_value(*option, name, words, at);
    }
    return {};
  }

  Status next_value(const CLI::Option& option, const std::string& name, const Words& words, size_t& at) {
    if (at + 1 >= words.size()) return wrong(name + " needs a value");
    return value(option, name, words[++at]);
  }

  // Where values may be joined by a character, that is the program's own wish.
  Status value(const CLI::Option& option, const std::string& name, const std::string& text) {
    if (text.empty()) return wrong(name + ": the value is empty; give one, or leave " + name + " out");
    const char delimiter = option.get_delimiter();
    for (const std::string& one : delimiter == '\0' ? Words{text} : CLI::detail::split(text, delimiter)) {
      divided_.push_back(name);
      put(one);
    }
    return {};
  }

  Status operand(const std::string& word) {
    const auto commands = commands_of(*chain_.back());
    for (const CLI::App* command : commands) {
      if (command->get_name() != word) continue;
      chain_.push_back(command);
      divided_.push_back(word);
      return {};
    }
    if (word.empty()) return wrong("an argument is empty; give a name, or leave it out");
    if (operands_++ < operands_max()) {
      put(word);
      return {};
    }
    if (commands.empty()) return wrong(in_quotes(word) + " is one argument too many");
    Words known;
    for (const CLI::App* command : commands) known.push_back(command->get_name());
    return wrong("no command " + in_quotes(word) + meant(nearest(word, known)));
  }

  size_t operands_max() const {
    size_t most = 0;
    for (const CLI::Option* option : chain_.back()->get_options()) {
      if (option->get_positional()) most += static_cast<size_t>(option->get_items_expected_max());
    }
    return most;
  }

  Status no_option(const std::string& word) const {
    Words known;
    for (const CLI::App* app : chain_) {
      for (const CLI::Option* option : app->get_options()) {
        for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
      }
    }
    const std::string near = word.starts_with("--") ? nearest(word, known) : "";
    return wrong("no option " + in_quotes(word) +
                 (near.empty() ? "; a name that begins with - stands behind --" : meant(near)));
  }

  static std::string meant(const std::string& near) {
    return near.empty() ? "" : "; did you mean '" + near + "'?";
  }

  void put(const std::string& text) {
    divided_.push_back(kPlaceholder + std::to_string(values_.size()));
    values_.push_back(text);
  }

  std::vector<const CLI::App*> chain_;  // the program, its command, the command's own
  Words divided_;
  Words values_;
  size_t operands_ = 0;
};

void put_values_back(CLI::App& app, const std::shared_ptr<const Words>& values) {
  for (CLI::Option* option : app.get_options()) {
    if (!takes_value(*option)) continue;
    if (!option->get_positional()) option->allow_extra_args(false);
    option->transform([values](const std::string& text) {
      size_t at = values->size();
      if (text.starts_with(kPlaceholder)) std::from_chars(text.data() + 1, text.data() + text.size(), at);
      return at < values->size() ? (*values)[at] : text;  // what is of the environment stands as it is
    });
  }
  for (CLI::App* command : app.get_subcommands([](CLI::App*) { return true; }))
    put_values_back(*command, values);
}

// CLI11 writes some messages over several lines; ours have one.
std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

// CLI11 calls an operand as the code does; people know it as --help shows it.
std::string as_in_help(const CLI::App& command, const std::string& message) {
  for (const CLI::Option* const option : command.get_options()) {
    const std::string name = option->get_name(true);
    const std::string shown = value_words(*option).name;
    if (!option->get_positional() || shown.empty() || !message.starts_with(name)) continue;
    const std::string rest = message.substr(name.size());
    if (rest.starts_with(' ') || rest.starts_with(':')) return shown + rest;
  }
  return message;
}

// Insertions, deletions and changes that make one of the other.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0]++;
    for (size_t k = 0; k < b.size(); ++k) {
      const size_t changed = diagonal + (a[i] == b[k] ? 0 : 1);
      diagonal = row[k + 1];
      row[k + 1] = std::min({changed, diagonal + 1, row[k] + 1});
    }
  }
  return row.back();
}

std::string shown(int64_t number) { return std::to_string(number); }
std::string shown(double number) {
  std::array<char, 64> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number);
  return {text.data(), end.ptr};
}

template <typename Number>
CLI::Validator range(Number least, Number most, const std::string& kind) {
  const std::string allowed = shown(least) + " to " + shown(most);
  CLI::Validator validator("(" + allowed + ")");
  validator.operation([least, most, kind, allowed](std::string& text) -> std::string {
    Number number{};
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    const bool whole_text = read.ec == std::errc() && read.ptr == text.data() + text.size();
    // In this order: no number compares with nan.
    if (!whole_text || !(number >= least && number <= most))
      return base::printable(text) + " is no " + kind + " from " + allowed;
    text = shown(number);  // CLI11 takes a leading zero for base 8
    return "";
  });
  return validator;
}

}  // namespace

std::string ValueWords::allowed() const {
  std::string text = range;
  for (size_t i = 0; i < choices.size(); ++i)
    text += (i == 0 ? "" : i + 1 == choices.size() ? " or " : ", ") + choices[i];
  return text;
}

std::vector<std::string> ValueWords::offered() const {
  if (!choices.empty() || name.find('[') != std::string::npos) return choices;
  std::vector<std::string> words = CLI::detail::split(name, '|');
  std::erase_if(words, [](const std::string& word) {
    return word.empty() || word.find_first_not_of("abcdefghijklmnopqrstuvwxyz") != std::string::npos;
  });
  return words;
}

// CLI11 puts it all into one text: "N:(1 to 16)", "KIND:{crc64,crc32c}". A name may have a colon of its own.
ValueWords value_words(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const auto between = [&type](const char* open, char close) {
    const size_t begin = type.find(open);
    const size_t end = type.rfind(close);
    if (begin == std::string::npos || end == std::string::npos) return std::string();
    return type.substr(begin + 2, end - begin - 2);
  };
  ValueWords words{.name = type.substr(0, std::min(type.find(":{"), type.find(":("))),
                   .choices = {},
                   .range = between(":(", ')')};
  if (const std::string list = between(":{", '}'); !list.empty())
    words.choices = CLI::detail::split(list, ',');
  return words;
}

std::string nearest(std::string_view word, const std::vector<std::string>& known) {
  std::string best;
  size_t least = word.size() < 4 ? 2 : 3;  // what differs by so much is another word
  for (const std::string& one : known) {
    const size_t far = distance(word, one);
    if (far >= least || far >= one.size()) continue;
    least = far;
    best = one;
  }
  return best;
}

Result<bool> parse(CLI::App& app, const std::vector<std::string>& words, std::ostream& out) {
  Divider divider(app);
  const auto wrong = [&divider](const std::string& what) {
    const std::string command = divider.command();
    return Error{ErrorCode::kUsage, what + (command.empty() ? "" : "; see '" + command + " --help'")};
  };
  if (const Status status = divider.divide(words); !status) return wrong(status.error().message);
  put_values_back(app, std::make_shared<const Words>(divider.values()));
  Words reversed = divider.divided();
  std::reverse(reversed.begin(), reversed.end());
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::Success& asked) {
    app.exit(asked, out, out);
    return false;
  } catch (const CLI::ParseError& error) {
    return wrong(as_in_help(divider.app(), one_line(error.what())));
  }
  return true;
}

Ended parse_main(CLI::App& app, int argc, const char* const* argv) {
  const Result<bool> parsed = parse(app, Words(argv + std::min(argc, 1), argv + argc), std::cout);
  if (parsed) return {.ended = !*parsed, .status = 0};
  std::cerr << app.get_name() << ": " << base::printable(parsed.error().message) << "\n";
  return {.ended = true, .status = static_cast<int>(ErrorCode::kUsage)};
}

CLI::Validator told(const std::vector<std::string>& words) {
  return CLI::Validator("{" + CLI::detail::join(words, ",") + "}");
}
CLI::Validator whole(int64_t least, int64_t most) { return range(least, most, "whole number"); }
CLI::Validator number(double least, double most) { return range(least, most, "number"); }

}  // namespace sluice::arguments
