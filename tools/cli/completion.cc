// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/completion.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <vector>

#include "dataplane/base/arguments/arguments.h"
#include "tools/cli/app.h"
#include "tools/cli/target.h"

namespace sluice::cli {
namespace {

struct OptionWords {
  std::vector<std::string> names;  // "--rate", "-q"
  std::string about;
  bool takes_value = false;
  std::vector<std::string> choices;  // of the value, where they are known
};

struct CommandWords {
  std::string path;  // "node init"; empty: `sluice` itself
  std::string about;
  std::vector<OptionWords> options;  // those of every command are the first one's
  std::vector<std::string> commands;
};

// The first sentence is enough beside a list.
std::string first_sentence(const std::string& text) {
  return text.substr(0, std::min(text.find(". "), text.find('\n')));
}

void collect(const CLI::App& app, const std::string& path, std::vector<CommandWords>& out) {
  const size_t at = out.size();
  out.push_back(
      {.path = path, .about = first_sentence(app.get_description()), .options = {}, .commands = {}});
  for (const CLI::Option* option : app.get_options()) {
    OptionWords words{.names = {},
                      .about = first_sentence(option->get_description()),
                      .takes_value = option->get_items_expected_max() > 0,
                      .choices = arguments::value_words(*option).offered()};
    for (const std::string& name : option->get_lnames()) words.names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) words.names.push_back("-" + name);
    if (!words.names.empty()) out[at].options.push_back(std::move(words));
  }
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    out[at].commands.push_back(command->get_name());
    collect(*command, path.empty() ? command->get_name() : path + " " + command->get_name(), out);
  }
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

// In single quotes of bash and zsh; of fish.
std::string in_quotes(const std::string& text) { return "'" + replaced(text, "'", "'\\''") + "'"; }
std::string in_fish_quotes(const std::string& text) {
  return "'" + replaced(replaced(text, "\\", "\\\\"), "'", "\\'") + "'";
}
std::string words_of(const std::vector<std::string>& words, const std::string& between) {
  return fmt::format("{}", fmt::join(words, between));
}

// Options that take a word and may stand anywhere: `sluice --node DIR send` is a send.
constexpr std::string_view kAnywhere = "--node";

// "a:b" is the word b behind the command a.
std::string walk_cases(const std::vector<CommandWords>& all, const std::string& form) {
  std::string out;
  for (const CommandWords& one : all) {
    if (one.path.empty()) continue;
    const size_t blank = one.path.rfind(' ');
    const std::string before = blank == std::string::npos ? "" : one.path.substr(0, blank);
    const std::string word = one.path.substr(blank == std::string::npos ? 0 : blank + 1);
    out += replaced(replaced(form, "@case", before + ":" + word), "@path", one.path);
  }
  return out;
}

std::vector<std::string> option_names(const CommandWords& one) {
  std::vector<std::string> out;
  for (const OptionWords& option : one.options)
    out.insert(out.end(), option.names.begin(), option.names.end());
  return out;
}

// `form` for each option that takes a value, by "@case": what stands before that value.
std::string value_cases(const std::vector<CommandWords>& all, const std::string& form) {
  std::string out;
  for (const CommandWords& one : all) {
    for (const OptionWords& option : one.options) {
      if (!option.takes_value) continue;
      std::vector<std::string> cases;
      for (const std::string& name : option.names) {
        cases.push_back(one.path.empty() ? "*:" + name : "'" + one.path + ":" + name + "'");
      }
      out += replaced(replaced(form, "@case", words_of(cases, " | ")), "@choices",
                      words_of(option.choices, " "));
    }
  }
  return out;
}

// The word under the cursor, which bash has divided at colons, and without its quotes; then what the node
// knows. bash puts what is offered in the place of the part behind the last colon.
constexpr std::string_view kBashOperands = R"(_sluice_unquoted() {
  local text=$1 out='' at
  for ((at = 0; at < ${#text}; ++at)); do
    if [[ ${text:at:1} == \\ ]] && ((at + 1 < ${#text})); then ((++at)); fi
    out+=${text:at:1}
  done
  printf %s "$out"
}
_sluice_operands() {
  local line=${COMP_LINE:0:COMP_POINT} word=${COMP_WORDS[COMP_CWORD]} quote='' before='' offered about
  if [[ -n $line ]]; then
    line=${line//\\ /$'\x01'}
    word=${line##*[[:space:]]}
    word=${word//$'\x01'/\\ }
  fi
  case $word in
    \"* | \'*) quote=1 word=${word:1} ;;
    *)
      word=$(_sluice_unquoted "$word")
      if [[ $word == *:* && $COMP_WORDBREAKS == *:* ]]; then before=${word%"${word##*:}"}; fi
      ;;
  esac
  while IFS=$'\t' read -r offered about; do
    if [[ $offered == *[:/] ]]; then compopt -o nospace 2>/dev/null; fi
    offered=${offered#"$before"}
    if [[ -z $quote ]]; then printf -v offered %q "$offered"; fi
    COMPREPLY+=("$offered")
  done < <("${COMP_WORDS[0]}" __operands "$1" "$word" ${2:+"$2"} 2>/dev/null)
  # With what is not here bash offers files by itself.
  if ((${#COMPREPLY[@]} == 0)) || [[ $word == *:* || ! $1 =~ ^(send|get)$ ]]; then return; fi
  while IFS= read -r offered; do
    if [[ -d $offered ]]; then offered+=/ && compopt -o nospace 2>/dev/null; fi
    if [[ -z $quote ]]; then printf -v offered %q "$offered"; fi
    COMPREPLY+=("$offered")
  done < <(compgen -f -- "$word")
}
)";

std::string bash_script(const std::vector<CommandWords>& all) {
  std::string out = "# Completion of sluice for bash, made by `sluice completion bash`.\n";
  out += kBashOperands;
  out +=
      "_sluice() {\n"
      "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command='' "
      "options='' "
      "words='' node='' i\n"
      "  for ((i = 1; i < COMP_CWORD; ++i)); do\n"
      "    case \"$command:${COMP_WORDS[i]}\" in\n"
      "      *:" +
      std::string(kAnywhere) +
      ")\n        if [[ ${COMP_WORDS[i + 1]} == = ]]; then ((++i)); fi\n"
      "        ((++i))\n        node=${COMP_WORDS[i]}\n        ;;\n";
  out += walk_cases(all, "      '@case') command='@path' ;;\n");
  out += "    esac\n  done\n  COMPREPLY=()\n  case \"$command:$previous\" in\n";
  out += value_cases(
      all,
      "    @case)\n      COMPREPLY=($(compgen -W '@choices' -- \"$current\"))\n      return\n      ;;\n");
  out += "  esac\n  case \"$command\" in\n";
  for (const CommandWords& one : all) {
    out += fmt::format("    '{}')\n      words='{}'\n      options='{}'\n      ;;\n", one.path,
                       words_of(one.commands, " "), words_of(option_names(one), " "));
  }
  out += fmt::format("  esac\n  options+=' {}'\n", words_of(option_names(all[0]), " "));
  return out +
         "  if [[ $current == -* ]]; then words=$options; fi\n"
         "  if [[ -n $words ]]; then\n"
         "    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
         "  else\n"
         "    _sluice_operands \"$command\" \"$node\"\n"
         "  fi\n"
         "}\n"
         "complete -o bashdefault -o default -F _sluice sluice\n";
}

std::string zsh_items(const CommandWords& one, const std::vector<CommandWords>& all, bool options) {
  const auto item = [](const std::string& name, const std::string& about) {
    return " " + in_quotes(replaced(name, ":", "\\:") + ":" + about);
  };
  std::string out;
  if (!options) {
    for (const std::string& name : one.commands) {
      const std::string path = one.path.empty() ? name : one.path + " " + name;
      const auto it =
          std::find_if(all.begin(), all.end(), [&](const CommandWords& c) { return c.path == path; });
      out += item(name, it->about);
    }
    return out;
  }
  for (const OptionWords& option : one.options) {
    for (const std::string& name : option.names) out += item(name, option.about);
  }
  return out;
}

std::string zsh_script(const std::vector<CommandWords>& all) {
  std::string out =
      "#compdef sluice\n"
      "# Completion of sluice for zsh, made by `sluice completion zsh`.\n"
      "_sluice() {\n"
      "  local command='' node='' i\n"
      "  local -a commands options choices found\n"
      "  for ((i = 2; i < CURRENT; ++i)); do\n"
      "    case \"$command:${words[i]}\" in\n"
      "      *:" +
      std::string(kAnywhere) +
      ") ((++i)); node=${(Q)words[i]} ;;\n"
      "      *:" +
      std::string(kAnywhere) + "=*) node=${(Q)words[i]#*=} ;;\n";
  out += walk_cases(all, "      '@case') command='@path' ;;\n");
  out += "    esac\n  done\n  case \"$command:${words[CURRENT-1]}\" in\n";
  out += value_cases(
      all,
      "    @case)\n      choices=(@choices)\n"
      "      if (( $#choices )); then compadd -a choices; else _files; fi\n      return\n      ;;\n");
  out += "  esac\n  case \"$command\" in\n";
  for (const CommandWords& one : all) {
    out += fmt::format("    '{}')\n      commands=({} )\n      options=({} )\n      ;;\n", one.path,
                       zsh_items(one, all, false), zsh_items(one, all, true));
  }
  out += "  esac\n  options+=(" + zsh_items(all[0], all, true) + " )\n";
  return out +
         "  if [[ ${words[CURRENT]} == -* ]]; then\n"
         "    _describe -o option options\n"
         "  elif (( $#commands )); then\n"
         "    _describe command commands\n"
         "  else\n"
         "    found=(\"${(@f)$(${words[1]} __operands \"$command\" \"${(Q)PREFIX}\" ${node:+$node} "
         "2>/dev/null)}\")\n"
         "    found=(${found%%$'\\t'*})\n"
         "    if (( $#found )); then compadd -S '' -a found; fi\n"
         "    if [[ $PREFIX != *:* ]]; then _files; fi\n"
         "  fi\n"
         "}\n"
         "_sluice \"$@\"\n";
}

std::string fish_script(const std::vector<CommandWords>& all) {
  std::string out =
      "# Completion of sluice for fish, made by `sluice completion fish`.\n"
      "function __sluice_command\n"
      "    set -l command ''\n"
      "    for word in (commandline -opc)[2..-1]\n"
      "        switch \"$command:$word\"\n";
  out += walk_cases(all, "            case '@case'\n                set command '@path'\n");
  out +=
      "        end\n    end\n    echo $command\nend\nfunction __sluice_is\n"
      "    test (__sluice_command) = \"$argv[1]\"\nend\n"
      "function __sluice_operands\n"
      "    set -l words (commandline -opc)\n"
      "    set -l node\n"
      "    if set -l at (contains -i -- --node $words)\n"
      "        set node $words[(math $at + 1)]\n"
      "    end\n"
      "    $words[1] __operands (__sluice_command) (string unescape -- (commandline -ct)) $node 2>/dev/null\n"
      "end\n"
      "complete -c sluice -a '(__sluice_operands)'\n";
  for (const CommandWords& one : all) {
    const std::string here = "complete -c sluice -n " + in_fish_quotes("__sluice_is \"" + one.path + "\"");
    for (const CommandWords& below : all) {
      const size_t blank = below.path.rfind(' ');
      const std::string before = blank == std::string::npos ? "" : below.path.substr(0, blank);
      if (below.path.empty() || before != one.path) continue;
      const std::string name = below.path.substr(blank == std::string::npos ? 0 : blank + 1);
      out += fmt::format("{} -f -a {} -d {}\n", here, name, in_fish_quotes(below.about));
    }
    for (const OptionWords& option : one.options) {
      out += one.path.empty() ? "complete -c sluice" : here;
      for (const std::string& name : option.names)
        out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      if (!option.choices.empty()) out += " -x -a " + in_fish_quotes(words_of(option.choices, " "));
      if (option.takes_value && option.choices.empty()) out += " -r";
      out += " -d " + in_fish_quotes(option.about) + "\n";
    }
  }
  return out;
}

}  // namespace

Result<std::string> completion_script(const CLI::App& app, const std::string& shell) {
  std::vector<CommandWords> all;
  collect(app, "", all);
  if (shell == "bash") return bash_script(all);
  if (shell == "zsh") return zsh_script(all);
  if (shell == "fish") return fish_script(all);
  return usage("no completion for the shell '" + printable(shell) + "'; there is bash, zsh and fish");
}

void add_completion_command(CLI::App& app, Context& context) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("completion", "Print a script with which a shell completes commands");
  command->add_option("shell", *shell, "That of the script")->required()->type_name("bash|zsh|fish");
  command->callback([&app, &context, shell] {
    context.action = [&app, &context, shell]() -> Result<int> {
      const auto script = completion_script(app, *shell);
      if (!script) return script.error();
      context.print({{"schema", "sluice.completion.v1"}, {"shell", *shell}, {"script", *script}}, *script);
      return 0;
    };
  });
}

}  // namespace sluice::cli
