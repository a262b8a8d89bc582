// sluice session log, session log-level: what the lanes of a session noted; node log-level: the daemons' own
// logs.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <ostream>

#include "dataplane/base/arguments/arguments.h"
#include "tools/cli/app.h"
#include "tools/cli/connect.h"
#include "tools/cli/format.h"
#include "tools/cli/log_format.h"
#include "tools/cli/progress.h"
#include "tools/cli/transfer_flags.h"

namespace sluice::cli {
namespace {

struct LogFlags {
  std::string id;
  std::optional<uint32_t> lane;
  bool follow = false;
  std::string level;
};

Result<int> log(const Context& context, const LogFlags& flags) {
  auto client = connect_to_node(context.node_directory());
  if (!client) return client.error();
  api::LogRequest request;
  request.set_id(flags.id);
  if (flags.lane) request.set_lane(*flags.lane);
  request.set_follow(flags.follow);
  std::ostream& out = context.environment.out;
  std::string session;
  std::string level;
  uint64_t records = 0;
  const Status status = (*client)->read_log(request, [&](const api::LogReply& part) {
    session = part.session();
    level = part.level();
    for (const api::LogRecord& record : part.records())
      out << (context.json ? api::to_line(api::log_json(session, record)) : log_text(record));
    records += static_cast<uint64_t>(part.records_size());
    out.flush();
    return out.good();
  });
  if (!status) return status.error();
  if (records == 0 && !context.json)
    context.environment.err << fmt::format(
        "sluice: nothing was noted of session {}{} (log level {})\n", printable(session),
        flags.lane ? fmt::format(" in lane {}", *flags.lane) : "", printable(level));
  return 0;
}

Result<int> set_level(const Context& context, const LogFlags& flags) {
  auto client = connect_to_node(context.node_directory());
  if (!client) return client.error();
  const auto set = (*client)->set_log_level(flags.id, flags.level);
  if (!set) return set.error();
  context.print(api::log_level_json(*set),
                fmt::format("session {} logs {}\n", printable(flags.id),
                            set->level() == "off" ? "nothing" : printable(set->level())));
  return 0;
}

// [COMPONENT=]LEVEL, as systemd and others have it; nothing: only shows.
Result<int> component_level(const Context& context, const std::string& wish) {
  auto client = connect_to_node(context.node_directory());
  if (!client) return client.error();
  api::ComponentLevel level;
  const size_t equals = wish.find('=');
  if (equals == 0)
    return Error{ErrorCode::kUsage, printable(wish) + ": name a component before =, or give a level alone"};
  if (equals != std::string::npos) level.set_component(wish.substr(0, equals));
  level.set_level(equals == std::string::npos ? wish : wish.substr(equals + 1));
  const auto levels = wish.empty() ? (*client)->log_levels() : (*client)->set_component_level(level);
  if (!levels) return levels.error();
  std::string text;
  for (const api::ComponentLevel& each : levels->levels())
    text += fmt::format("{:<10} {}\n", printable(each.component()),
                        each.level().empty() ? "unknown: not attached" : printable(each.level()));
  context.print(api::log_levels_json(*levels), text);
  return 0;
}

}  // namespace

void add_log_commands(CLI::App& session, Context& context) {
  auto flags = std::make_shared<LogFlags>();
  CLI::App* const reading = session.add_subcommand(
      "log", "Print what its lanes noted: gaps, reports, retransmissions, rates, completions");
  reading->add_option("id", flags->id, "Session, as 'sluice session list' shows it")
      ->required()
      ->type_name("ID");
  reading->add_option("--lane", flags->lane, "Of this lane alone; the first is 0")
      ->type_name("N")
      ->transform(arguments::whole(0, 65535));
  reading->add_flag("-f,--follow", flags->follow, "Also what comes, until the session ends");
  reading->callback(
      [&context, flags] { context.action = [&context, flags] { return log(context, *flags); }; });
  CLI::App* const setting =
      session.add_subcommand("log-level", "Set how much the lanes of a session note, from now on");
  setting->add_option("id", flags->id, "Session, as 'sluice session list' shows it")
      ->required()
      ->type_name("ID");
  setting->add_option("level", flags->level, "events, packets (each datagram), off")
      ->required()
      ->type_name("LEVEL")
      ->check(validator_of("log_level"));
  setting->callback(
      [&context, flags] { context.action = [&context, flags] { return set_level(context, *flags); }; });
}

void add_node_log_level(CLI::App& node, Context& context) {
  auto wish = std::make_shared<std::string>();
  CLI::App* const command = node.add_subcommand(
      "log-level", "Show or set how much the running daemons log, until they are started anew");
  command->add_option("level", *wish, "Of all, or of COMPONENT: control, session, peer, board, dataplane")
      ->type_name("[COMPONENT=]LEVEL")
      ->check(arguments::told({"trace", "debug", "info", "warn", "error", "critical", "off"}));
  command->callback(
      [&context, wish] { context.action = [&context, wish] { return component_level(context, *wish); }; });
}

}  // namespace sluice::cli
