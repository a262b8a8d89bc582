// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/transfer_flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <functional>
#include <system_error>

#include "control/selection/name_list.h"
#include "dataplane/base/arguments/arguments.h"
#include "dataplane/base/config/config.h"
#include "tools/cli/format.h"
#include "tools/cli/node_files.h"
#include "tools/cli/target.h"
#include "tools/cli/when.h"

namespace sluice::cli {
namespace {

// Each is noted when it is met: the order of them all counts.
void add_rules(CLI::App& command, TransferFlags& flags) {
  const auto add = [&command](const std::string& name, const std::string& about, const std::string& type,
                              std::function<void(const std::string&)> note) {
    command.add_option_function<std::string>(name, std::move(note), about)
        ->type_name(type)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->trigger_on_parse();
  };
  add("--include", "Take names that fit this pattern, as rsync does; the first that fits decides", "PATTERN",
      [&flags](const std::string& pattern) { flags.rules.push_back({.include = true, .pattern = pattern}); });
  add("--exclude", "Leave out names that fit this pattern, as rsync does; the first that fits decides",
      "PATTERN", [&flags](const std::string& pattern) {
        flags.rules.push_back({.include = false, .pattern = pattern});
      });
  add("--filter", "\"+ PATTERN\": include it; \"- PATTERN\": exclude it", "RULE",
      [&flags](const std::string& rule) {
        if (rule.size() < 3 || (rule[0] != '+' && rule[0] != '-') || rule[1] != ' ')
          throw CLI::ValidationError("--filter", printable(rule) + ": write \"+ PATTERN\" or \"- PATTERN\"");
        flags.rules.push_back({.include = rule[0] == '+', .pattern = rule.substr(2)});
      });
  auto* list =
      command
          .add_option("--files-from", flags.files_from,
                      "Of the one directory given only the names in this file, a line each; -: stdin")
          ->type_name("FILE");
  command
      .add_flag("-0,--from0", flags.from0, "A zero byte ends each name of that file, instead of a line's end")
      ->needs(list);
}

// What a path loses, and what is done about it.
void add_path_flags(CLI::App& command, TransferFlags& flags) {
  command
      .add_option("--expect-loss", flags.expected_loss_percent,
                  "Percentage of datagrams that the path loses, however little is sent")
      ->type_name("PERCENT")
      ->transform(arguments::number(0, 95));
  command
      .add_option("--fec", flags.fec,
                  "Forward error correction: auto, where it saves time (the default), rs or raptorq wherever "
                  "anything is "
                  "lost, off")
      ->type_name("CODE")
      ->check(CLI::IsMember({"off", "auto", "rs", "raptorq"}));
  command
      .add_option("--chunk-bytes", flags.chunk_bytes,
                  "Payload of one datagram; auto: whatever brings most under the path's loss")
      ->type_name("N");
}

}  // namespace

// The node refuses what is beyond, too.
CLI::Validator priority_range() { return arguments::whole(-100, 100); }
CLI::Validator lanes_range() { return range_of("transfer", "lanes"); }

CLI::Validator log_levels() { return CLI::IsMember({"events", "packets", "off"}); }

void add_data_flags(CLI::App& command, TransferFlags& flags) {
  command.add_option("--mode", flags.mode, "How the rate is found (docs/RATE.md)")
      ->type_name("MODE")
      ->check(CLI::IsMember({"adaptive", "fixed", "cubic"}));
  command.add_option("--crc", flags.crc, "Kind of checksum; none and read check nothing: only into null:")
      ->type_name("KIND")
      ->check(CLI::IsMember({"crc64", "crc32c", "none", "read"}));
  command.add_option("--protection", flags.protection, "What data are under; no less than the node's own")
      ->type_name("P")
      ->check(CLI::IsMember({"aes-128-gcm", "aes-256-gcm", "crc"}));
  auto* ip4 = command.add_flag("-4,--ipv4", flags.ip4, "Send the data over IPv4");
  command.add_flag("-6,--ipv6", flags.ip6, "Send the data over IPv6")->excludes(ip4);
}

void add_flags(CLI::App& command, TransferFlags& flags) {
  command.add_option("--lanes", flags.lanes, "UDP flows side by side")
      ->type_name("N")
      ->transform(lanes_range());
  command.add_option("--rate", flags.rate, "Limit of the session in bit/s, such as 10G or 800M")
      ->type_name("RATE");
  command.add_option("--min-rate", flags.min_rate, "Fail if it is slower than this for a minute")
      ->type_name("RATE");
  command
      .add_option(
          "--timeout", flags.timeout_s,
          "Fail when nothing has moved for so many seconds; without it what stands still may go on later")
      ->type_name("S")
      ->transform(arguments::whole(1, 10'000'000));
  command
      .add_option(
          "--deadline", flags.deadline,
          "When all is to be done: 2h30m, 18:00, 2026-11-22T18:00:00Z; refused if that cannot be kept")
      ->type_name("T");
  command
      .add_option("--deadline-policy", flags.deadline_policy,
                  "refuse what cannot be kept (the default), only warn, or refuse and stop when it is over")
      ->type_name("POLICY")
      ->check(CLI::IsMember({"refuse", "warn", "stop"}));
  command
      .add_option("--priority", flags.priority,
                  "Among sessions that wait for their turn the higher goes first (0)")
      ->type_name("N")
      ->transform(priority_range());
  command
      .add_option("--log-level", flags.log_level,
                  "What 'session log' has of it: events (the default), packets (each datagram), off")
      ->type_name("LEVEL")
      ->check(log_levels());
  add_path_flags(command, flags);
  command.add_flag("--overwrite", flags.overwrite, "Replace a destination that exists");
  command.add_flag("--mkdir", flags.mkdir,
                   "Make the directories of the destination's path that are missing, as mkdir -p does");
  command.add_flag(
      "--verify", flags.verify,
      "The destination reads each file back from its disk and compares it before it gets its name");
  command.add_flag("--owner", flags.owner, "Keep whose each name is; the destination must run as root");
  command.add_flag("--group", flags.group, "Keep the group of each name");
  command.add_flag("--numeric-ids", flags.numeric_ids,
                   "With --owner, --group and --acls: by their numbers, not by their names");
  command.add_flag("--xattrs", flags.xattrs, "Keep the extended attributes of users (user.*) of each name");
  command.add_flag("--acls", flags.acls, "Keep the POSIX ACLs of each name");
  add_rules(command, flags);
  command.add_flag("-n,--dry-run", flags.dry_run, "Only print what would be sent, and what would be missing");
  command.add_flag("--sync", flags.sync,
                   "Of one directory, send what is missing or differs in size, time, mode or kind");
  command.add_flag("--delete", flags.removes, "With --sync: then remove what the source lacks");
  command.add_flag("--checksum", flags.checksum,
                   "With --sync: files are the same if what they hold is; all are read, at both nodes");
  command.add_flag("--literal", flags.literal, "Wildcards in what is fetched mean themselves");
  add_data_flags(command, flags);
}

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
  const bool standard = flags.files_from == "-";
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
  const auto names = selection::read_names(*text, flags.from0);
  if (!names) return Error{ErrorCode::kUsage, shown + ": " + names.error().message};
  for (const std::string& name : *names) options.add_names(name);
  return {};
}

Status set_options(const TransferFlags& flags, api::TransferOptions& options) {
  if (flags.lanes == 0U) return Error{ErrorCode::kUsage, "--lanes: 0 carry nothing; give 1 or more"};
  options.set_lanes(flags.lanes.value_or(0));
  options.set_crc(flags.crc);
  options.set_protection(flags.protection);
  options.set_overwrite(flags.overwrite);
  options.set_verify(flags.verify);
  options.set_mkdir(flags.mkdir);
  options.set_owner(flags.owner);
  options.set_group(flags.group);
  options.set_numeric_ids(flags.numeric_ids);
  options.set_xattrs(flags.xattrs);
  options.set_acls(flags.acls);
  if (flags.ip4) options.set_ip("4");
  if (flags.ip6) options.set_ip("6");
  if (!flags.rate.empty()) {
    const auto rate_bps = rate_option("--rate", flags.rate);
    if (!rate_bps) return rate_bps.error();
    options.set_rate_bps(*rate_bps);
  }
  options.set_mode(flags.mode);
  options.set_fec(flags.fec);
  options.set_timeout_s(flags.timeout_s);
  options.set_priority(flags.priority);
  options.set_log_level(flags.log_level);
  if (flags.expected_loss_percent) options.set_expected_loss(*flags.expected_loss_percent / 100);
  if (!flags.min_rate.empty()) {
    const auto rate_bps = rate_option("--min-rate", flags.min_rate);
    if (!rate_bps) return rate_bps.error();
    options.set_min_rate_bps(*rate_bps);
  }
  if (!flags.deadline.empty()) {
    const auto when_ns = parse_when(flags.deadline, unix_now_ns());
    if (!when_ns) return Error{ErrorCode::kUsage, "--deadline: " + when_ns.error().message};
    options.set_deadline_unix_ns(*when_ns);
    options.set_deadline_policy(flags.deadline_policy);
  } else if (!flags.deadline_policy.empty()) {
    return Error{ErrorCode::kUsage, "--deadline-policy: of what deadline? Give --deadline as well"};
  }
  for (const selection::Rule& rule : flags.rules) selection::put_rule(rule, &options);
  if (flags.chunk_bytes == "auto") {
    options.set_chunk_auto(true);
  } else if (!flags.chunk_bytes.empty()) {
    const auto bytes = config::parse_size(flags.chunk_bytes);
    if (!bytes) return Error{ErrorCode::kUsage, "--chunk-bytes: " + bytes.error().message};
    if (*bytes == 0 || *bytes > UINT16_MAX) {
      return Error{ErrorCode::kUsage, "--chunk-bytes: " + flags.chunk_bytes + " does not fit a datagram"};
    }
    options.set_chunk_bytes(static_cast<uint32_t>(*bytes));
  }
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
  if (flags.detach)
    return wrong("--sync: not with --detach; the command compares, sends and removes, one after the other");
  return {};
}

}  // namespace

Result<api::TransferRequest> transfer_request(Direction direction, const TransferFlags& flags,
                                              const std::filesystem::path& working_directory,
                                              std::istream* input) {
  if (direction == Direction::kSend) {
    auto request = send_request(flags.paths, working_directory);
    if (!request) return request.error();
    if (auto ok = check_sync(flags, request->sources(0), request->destination()); !ok) return ok.error();
    if (auto ok = set_options(flags, *request->mutable_options()); !ok) return ok.error();
    if (auto ok = read_list(flags, working_directory, input, *request->mutable_options()); !ok)
      return ok.error();
    return api::TransferRequest(std::move(*request));
  }
  auto request = get_request(flags.paths, working_directory);
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
