// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/transfer_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <system_error>
#include <variant>

#include "control/digests/kind.h"
#include "control/proto/option_fields.h"
#include "control/selection/name_list.h"
#include "dataplane/base/arguments/arguments.h"
#include "dataplane/base/config/config.h"
#include "dataplane/base/options/options.h"
#include "tools/cli/app.h"
#include "tools/cli/format.h"
#include "tools/cli/target.h"
#include "tools/cli/teller.h"
#include "tools/cli/when.h"
#include "tools/manifest/list.h"

namespace sluice::cli {
namespace {

using options::Kind;
using options::Option;

void note_rule(TransferFlags& flags, std::string_view option, const std::string& text) {
  if (option != "filter") return flags.rules.push_back({.include = option == "include", .pattern = text});
  if (text.size() < 3 || (text[0] != '+' && text[0] != '-') || text[1] != ' ')
    throw CLI::ValidationError("--filter", printable(text) + ": write \"+ PATTERN\" or \"- PATTERN\"");
  flags.rules.push_back({.include = text[0] == '+', .pattern = text.substr(2)});
}

// Each is noted when it is met: the order of them all counts.
CLI::Option* add_rule(CLI::App& command, TransferFlags& flags, const Option& option) {
  auto note = [&flags, name = option.name](const std::string& text) { note_rule(flags, name, text); };
  return command.add_option_function<std::string>(std::string(option.flag), note)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->trigger_on_parse();
}

// Of the command alone.
std::variant<std::monostate, bool*, std::string*> member_of(TransferFlags& flags, std::string_view name) {
#define SLUICE_OPTION(...)
#define SLUICE_COMMAND(member, type, ...) \
  if (name == #member) return &flags.member;
#include "dataplane/base/options/options.def"
  return {};
}

CLI::Option* add_row(CLI::App& command, TransferFlags& flags, const Option& option, std::string_view as) {
  if (option.kind == Kind::kRule) return add_rule(command, flags, option);
  const std::string flag(as);
  const std::string name(option.name);
  const auto member = member_of(flags, option.name);
  if (const auto* value = std::get_if<bool*>(&member)) return command.add_flag(flag, **value);
  if (const auto* value = std::get_if<std::string*>(&member)) return command.add_option(flag, **value);
  if (option.kind == Kind::kSwitch) return command.add_flag(flag, flags.switches[name]);
  CLI::Option* const added = command.add_option(flag, flags.values[name]);
  if (option.kind == Kind::kChoice) added->check(validator_of(name));
  if (option.kind == Kind::kNumber || option.kind == Kind::kPercent) added->transform(validator_of(name));
  return added;
}

void add_rows(CLI::App& command, TransferFlags& flags, bool typed) {
  for (const Option& option : options::all()) {
    if (!option.flag.empty() && (typed || option.in_files)) add_option(command, flags, option.name);
  }
}

}  // namespace

CLI::Validator validator_of(std::string_view name) {
  const Option& option = *options::find(name);
  if (option.kind == Kind::kChoice)
    return CLI::IsMember(std::vector<std::string>(option.choices.begin(), option.choices.end()));
  if (option.kind == Kind::kPercent) return arguments::number(option.least, option.most);
  return arguments::whole(static_cast<int64_t>(option.least), static_cast<int64_t>(option.most));
}

CLI::Option* add_option(CLI::App& command, TransferFlags& flags, std::string_view name, std::string_view as,
                        std::string_view help) {
  const Option& option = *options::find(name);
  CLI::Option* const added = add_row(command, flags, option, as.empty() ? option.flag : as);
  added->description(std::string(help.empty() ? option.help : help));
  if (!option.value.empty()) added->type_name(std::string(option.value));
  if (!option.needs.empty()) added->needs(command.get_option(std::string(option.needs)));
  if (!option.excludes.empty()) added->excludes(command.get_option(std::string(option.excludes)));
  return added;
}

CLI::Option* add_from(CLI::App& command, TransferFlags& flags) {
  auto note = [&flags](const std::string& nodes) {
    for (size_t begin = 0; begin <= nodes.size();) {
      const size_t comma = std::min(nodes.find(',', begin), nodes.size());
      flags.from.push_back(nodes.substr(begin, comma - begin));
      begin = comma + 1;
    }
  };
  return command.add_option_function<std::string>("--from", note, std::string(kFromHelp))
      ->type_name("NODE,NODE...")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->trigger_on_parse();
}

void add_flags(CLI::App& command, TransferFlags& flags) { add_rows(command, flags, false); }
void add_command_flags(CLI::App& command, TransferFlags& flags) { add_rows(command, flags, true); }

namespace {

constexpr size_t kListBytesMax = 2 * selection::kNamesBytesMax;  // with what is no name

Result<std::string> read_bounded(std::istream& in, const std::string& shown) {
  std::string text;
  std::array<char, 64U << 10> part{};
  do {
    in.read(part.data(), part.size());
    text.append(part.data(), static_cast<size_t>(in.gcount()));
    if (text.size() > kListBytesMax)
      return Error{ErrorCode::kUsage, fmt::format("{}: longer than {} MiB; send parts of it by themselves",
                                                  shown, kListBytesMax >> 20)};
  } while (in.good());
  if (in.bad()) return Error{ErrorCode::kUsage, shown + ": cannot be read: " + std::strerror(errno)};
  return text;
}

Status read_list(const TransferFlags& flags, const std::filesystem::path& working_directory,
                 std::istream* input, api::TransferOptions& options) {
  if (flags.files_from.empty()) return {};
  const bool standard = is_standard(flags.files_from);
  if (standard && input == nullptr)
    return Error{ErrorCode::kUsage, "--files-from -: stdin is not read here; name a file"};
  std::ifstream file;
  if (!standard) {
    file.open(working_directory / flags.files_from, std::ios::binary);
    (void)file.peek();  // a directory opens, and fails here
    if (!file.is_open() || file.bad())
      return Error{ErrorCode::kUsage, fmt::format("--files-from {}: cannot be read: {}",
                                                  printable(flags.files_from), std::strerror(errno))};
  }
  const std::string shown = "--files-from " + printable(flags.files_from);
  const Result<std::string> text = read_bounded(standard ? *input : file, shown);
  if (!text) return text.error();
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  const size_t begin = text->starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0;
  const auto names = selection::read_names(std::string_view(*text).substr(begin), flags.from0);
  if (!names) return Error{ErrorCode::kUsage, shown + ": " + names.error().message};
  for (const std::string& name : *names) options.add_names(name);
  return {};
}

Result<int64_t> size_in(const Option& option, const std::string& text) {
  const std::string flag(option.long_flag());
  const auto bytes = config::parse_size(text);
  if (!bytes) return Error{ErrorCode::kUsage, flag + ": " + bytes.error().message};
  const auto number = static_cast<int64_t>(*bytes);
  if (const Status possible = option.check(number, flag); !possible) return possible.error();
  return number;
}

Result<int64_t> moment_in(const Option& option, const std::string& text) {
  const auto when_ns = parse_when(text, unix_now_ns());
  if (!when_ns)
    return Error{ErrorCode::kUsage, std::string(option.long_flag()) + ": " + when_ns.error().message};
  return *when_ns;
}

// The value of what was given. Ranges of numbers, and words, were looked at when the words were read.
Result<int64_t> number_in(const Option& option, const std::string& text) {
  const std::string flag(option.long_flag());
  switch (option.kind) {
    case Kind::kRate: {
      const auto rate_bps = rate_option(flag, text, option);
      if (!rate_bps) return rate_bps.error();
      return static_cast<int64_t>(*rate_bps);
    }
    case Kind::kSize:
      return size_in(option, text);
    case Kind::kMoment:
      return moment_in(option, text);
    case Kind::kPercent:
      return std::llround(std::strtod(text.c_str(), nullptr) * 1e4);
    case Kind::kChoice:
      return option.of_word(text, flag);
    default:
      return std::strtoll(text.c_str(), nullptr, 10);
  }
}

void put(const Option& option, int64_t number, api::TransferOptions& to) {
  api::set_option(option, number, &to, *api::option_field(option, to));
}

Status set_options(const TransferFlags& flags, api::TransferOptions& to) {
  for (const auto& [name, given] : flags.switches) {
    if (given) put(*options::find(name), 1, to);
  }
  for (const auto& [name, text] : flags.values) {
    if (text.empty()) continue;
    const Option& option = *options::find(name);
    if (!option.or_switch.empty() && text == option.or_switch) {
      put(*options::find(option.switched), 1, to);
      continue;
    }
    const Result<int64_t> number = number_in(option, text);
    if (!number) return number.error();
    put(option, *number, to);
  }
  if (!to.deadline_policy().empty() && to.deadline_unix_ns() == 0)
    return Error{ErrorCode::kUsage, "--deadline-policy: of what deadline? Give --deadline as well"};
  if (!flags.digest.empty() || !flags.write_manifest.empty()) {
    const auto kinds = manifest::kinds_to_write(flags.digest, flags.write_manifest);
    if (!kinds) return kinds.error();
    to.set_digests(digests::mask_of(*kinds));
  }
  to.set_lease(flags.lease);
  if (!flags.part.empty() && (flags.sync || flags.dry_run || !flags.files_from.empty()))
    return Error{ErrorCode::kUsage, "--part: of one file alone; not with --sync, --dry-run or --files-from"};
  to.set_part(flags.part);
  if (flags.ipv4) to.set_ip("4");
  if (flags.ipv6) to.set_ip("6");
  for (const selection::Rule& rule : flags.rules) selection::put_rule(rule, &to);
  return {};
}

// A sync is of one directory, and takes the command to its end.
Status check_sync(const TransferFlags& flags, const std::string& source, const std::string& destination) {
  const auto wrong = [](const std::string& what) { return Error{ErrorCode::kUsage, what}; };
  if (flags.removes && !flags.sync)
    return wrong("--delete: only with --sync, which says what is to be removed");
  if (flags.checksum && !flags.sync)
    return wrong("--checksum: only with --sync, which says what is compared");
  if (!flags.sync) return {};
  if (flags.paths.size() != 2) return wrong("--sync: give one directory, and where it is to be the same");
  if (api::is_memory_source(source) || api::is_null_destination(destination))
    return wrong("--sync: memory: and null: are no directories that could be compared");
  if (!flags.files_from.empty()) return wrong("--sync: not with --files-from; what differs is what is sent");
  if (!flags.from.empty())
    return wrong("--sync: not with --from; a directory is compared with that of one node: write NODE:DIR");
  if (flags.detach)
    return wrong("--sync: not with --detach; the command compares, sends and removes, one after the other");
  return {};
}

// Whoever stays to the end can tell of it.
Status check_notify(const TransferFlags& flags) {
  if (flags.notify.empty()) return {};
  if (flags.detach)
    return Error{
        ErrorCode::kUsage,
        "--notify: not with --detach, which leaves before the end; 'sluice session events --exec PROGRAM' "
        "tells of every session"};
  if (flags.dry_run && !flags.sync)
    return Error{ErrorCode::kUsage, "--notify: not with --dry-run, of which no session ends"};
  return check_program("--notify", flags.notify);
}

// A command that sees the end writes a list, and compares; a sync is several sessions.
Status check_lists(const TransferFlags& flags, bool standard) {
  const auto wrong = [](const std::string& what) { return Error{ErrorCode::kUsage, what}; };
  const bool lists = !flags.manifest.empty() || !flags.write_manifest.empty();
  if (flags.sync && (lists || !flags.digest.empty()))
    return wrong(
        "--digest, --manifest, --write-manifest: not with --sync; 'sluice verify' reads what stands there");
  if (flags.detach && lists)
    return wrong("--manifest and --write-manifest: not with --detach, which leaves before the end");
  if (!standard && is_standard(flags.manifest))
    return wrong("--manifest -: stdin is not read here; name a file");
  if (!standard && is_standard(flags.write_manifest))
    return wrong("--write-manifest -: the standard output is no list's here; name a file");
  return {};
}

// What needs a look at the source from here.
Status check_between(const TransferFlags& flags) {
  const auto wrong = [](const std::string& what) { return Error{ErrorCode::kUsage, what}; };
  if (flags.dry_run && !flags.sync)
    return wrong("--dry-run: not between two other nodes; 'sluice ls -R NODE:PATH' tells what would be sent");
  if (!flags.lease.empty())
    return wrong("--lease: not between two other nodes; run the command at one of them");
  if (!flags.from.empty())
    return wrong("--from: several sources send to this node; PATH is local, ./ before it says so");
  return {};
}

}  // namespace

Result<api::TransferRequest> transfer_request(Direction direction, const TransferFlags& flags,
                                              const std::filesystem::path& working_directory,
                                              std::istream* input, const KnowsNode& knows) {
  const bool sends = direction == Direction::kSend;
  if (const Status possible = check_notify(flags); !possible) return possible.error();
  if (const Status possible = check_lists(flags, input != nullptr); !possible) return possible.error();
  const auto between = knows ? two_nodes(flags.paths, sends, knows, working_directory)
                             : Result<std::optional<api::SendRequest>>(std::nullopt);
  if (!between) return between.error();
  if (*between) {
    if (const Status possible = check_between(flags); !possible) return possible.error();
  }
  if (sends || *between) {
    auto request =
        *between ? Result<api::SendRequest>(**between) : send_request(flags.paths, working_directory);
    if (!request) return request.error();
    if (auto ok = check_sync(flags, request->sources(0), request->destination()); !ok) return ok.error();
    if (auto ok = set_options(flags, *request->mutable_options()); !ok) return ok.error();
    if (auto ok = read_list(flags, working_directory, input, *request->mutable_options()); !ok)
      return ok.error();
    return api::TransferRequest(std::move(*request));
  }
  if (knows && !flags.paths.empty()) {
    const Status here = check_destination_here(flags.paths.back(), knows, working_directory);
    if (!here) return here.error();
  }
  auto request = get_request(flags.paths, flags.from, working_directory);
  if (!request) return request.error();
  if (auto ok = check_sync(flags, request->sources(0), request->destination()); !ok) return ok.error();
  std::error_code ignored;
  if (!request->destination().ends_with('/') &&
      std::filesystem::is_directory(request->destination(), ignored)) {
    request->set_destination(request->destination() + "/");
  }
  if (auto ok = set_options(flags, *request->mutable_options()); !ok) return ok.error();
  if (auto ok = read_list(flags, working_directory, input, *request->mutable_options()); !ok)
    return ok.error();
  return api::TransferRequest(std::move(*request));
}

}  // namespace sluice::cli
