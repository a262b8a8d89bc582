// sluice session list|show|wait|pause|continue|cancel|limit|priority, sluice counters.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <ostream>
#include <vector>

#include "control/proto/session_state.h"
#include "dataplane/base/arguments/arguments.h"
#include "dataplane/base/config/config.h"
#include "dataplane/base/counted.h"
#include "tools/cli/app.h"
#include "tools/cli/chart.h"
#include "tools/cli/connect.h"
#include "tools/cli/follow.h"
#include "tools/cli/format.h"
#include "tools/cli/local_files.h"
#include "tools/cli/progress.h"
#include "tools/cli/session_list.h"
#include "tools/cli/target.h"
#include "tools/cli/transfer_flags.h"
#include "tools/cli/when.h"

namespace sluice::cli {
namespace {

// As timeout(1) has it: no ErrorCode, since nothing failed.
constexpr int kTimeoutExitCode = 124;
// For so long a command waits until what it asked for has come about.
constexpr double kSettleS = 5;
constexpr size_t kPlotRows = 8;
constexpr size_t kPlainColumns = 80;  // of what is no terminal

struct SessionFlags {
  std::string rate;
  int32_t priority = 0;
  std::string id;
  std::optional<double> timeout_s;
  int timeout_exit_code = kTimeoutExitCode;
  bool quiet = false;
  bool plot = false;
};

// Why chunks are no longer, where that is not what was configured.
std::string_view chunk_reason(const api::Session& s) {
  if (s.chunk_reason() == "loss") return " (the size that brings most)";
  return s.chunk_reason() == "path" ? " (all that the path carries)" : "";
}

// Off and unused: nothing to say.
std::string fec_text(const api::Session& s) {
  if (s.fec().empty() || s.fec() == "off" || (s.fec() == "auto" && s.parity() == 0)) return "";
  return fmt::format("{}, {} repair symbols, {} chunks made of them", printable(s.fec()), s.parity(),
                     s.decoded_chunks());
}

// Off and unused: nothing to say.
std::string compression_text(const api::Session& s) {
  if (s.compress().empty() || s.compress() == "off") return "";
  if (s.compressed_wire_bytes() == 0) return printable(s.compress()) + ", nothing travelled compressed";
  return fmt::format(
      "{}, {} travelled as {} ({:.2f} to 1)", printable(s.compress()), format_bytes(s.compressed_bytes()),
      format_bytes(s.compressed_wire_bytes()),
      static_cast<double>(s.compressed_bytes()) / static_cast<double>(s.compressed_wire_bytes()));
}

// One of several sources, or of several ways to one.
std::string leg_text(const api::LegProgress& leg) {
  return fmt::format("{}: {}{}, {} lost, {} retransmits, {}{}{}", printable(leg.peer()),
                     format_bytes(leg.bytes()),
                     leg.has_rate_bps() && leg.rate_bps() > 0 ? " at " + format_rate(leg.rate_bps()) : "",
                     leg.lost(), leg.retransmits(), printable(leg.state()),
                     leg.waiting_for().empty() ? "" : ", waiting for " + printable(leg.waiting_for()),
                     leg.error().empty() ? "" : ", done without: " + printable(leg.error()));
}

// A source of a part knows no digest of the whole.
std::string digests_text(const api::FileProgress& file) {
  std::string text = "digest";
  if (!file.digest_source().empty()) text += " source " + file.digest_source();
  if (!file.digest_destination().empty()) text += " destination " + file.digest_destination();
  return text;
}

std::string causes_text(const api::Session& s) {
  std::string text;
  for (const api::Bottleneck& cause : s.causes()) {
    text += fmt::format("{}{} {:.0f} %", text.empty() ? "" : ", ",
                        cause.cause() == "none" ? "nothing" : printable(cause.cause()), cause.share() * 100);
  }
  return text;
}

std::string details(const api::Session& s) {
  std::string out;
  const auto add = [&out](std::string_view name, const std::string& value) {
    if (!value.empty()) out += fmt::format("{:<14}{}\n", name, value);
  };
  add("session", printable(s.id()));
  add("state", api::state_name(s));
  add("waiting for", printable(s.waiting_for()));
  if (!s.error().empty())
    add("error", fmt::format("{} ({}, {})", printable(s.error()), s.error_name(), s.error_code()));
  add("direction", direction_text(s));
  add("peer", printable(s.peer()));
  add("bytes", fmt::format("{} of {}{}", s.bytes_done(), s.bytes_total(), so_far(s)));
  add("rate", s.has_rate_bps() ? format_rate(s.rate_bps()) : "");
  add("goodput", s.data_elapsed_s() > 0 ? format_rate(s.goodput_bps()) : "");
  add("rate limit", s.rate_limit_bps() == 0 ? "" : format_rate(static_cast<double>(s.rate_limit_bps())));
  add("rate mode",
      printable(s.rate_mode()) + (s.rate_state().empty() ? "" : ", " + printable(s.rate_state())));
  add("bottleneck", bottleneck_text(s.bottleneck()));
  if (!bottleneck_text(s.bottleneck()).empty()) {
    for (const std::string& line : s.bottleneck().evidence()) add("", printable(line));
  }
  if (s.causes_size() > 1) add("over its time", causes_text(s));
  add("priority", s.priority() == 0 ? "" : std::to_string(s.priority()));
  add("deadline", deadline_text(s));
  if (s.expected_end_unix_ns() != 0)
    add("expected end", format_when(s.expected_end_unix_ns(), s.started_unix_ns()));
  add("elapsed", fmt::format("{:.3f} s, of data {:.3f} s", s.elapsed_s(), s.data_elapsed_s()));
  add("chunks", fmt::format("{} of {} bytes{}, {} retransmits, {} duplicates", s.chunks(), s.chunk_bytes(),
                            chunk_reason(s), s.retransmits(), s.duplicates()));
  for (const api::ChunkSize& size : s.sizes()) {
    add("size",
        fmt::format(
            "{:>5} bytes: {} of {} probes arrived, {:.1f} % by the law, goodput {:.1f} % of the wire, "
            "{:.0f} bytes a datagram",
            size.chunk_bytes(), size.arrived(), size.sent(), size.arrives() * 100, size.goodput() * 100,
            size.payload_bytes()));
  }
  add("loss length", s.loss_length_bytes() == 0 ? "" : fmt::format("{:.0f} bytes", s.loss_length_bytes()));
  add("losses", fmt::format("{} network, {} destination had no room, {} CRC errors", s.lost(), s.no_room(),
                            s.crc_errors()));
  add("fec", fec_text(s));
  add("compression", compression_text(s));
  for (const api::LegProgress& leg : s.legs())
    if (s.legs_size() > 1) add("from", leg_text(leg));
  add("round trip", s.rtt_us() == 0 ? "" : fmt::format("{:.0f} us", s.rtt_us()));
  add("lanes", std::to_string(s.lanes()));
  add("crc", printable(s.crc()));
  add("protection",
      printable(s.protection()) + (s.protection() == "crc" ? ": neither encrypted nor authenticated" : ""));
  add("wire", printable(s.wire()));
  if (s.names().total() > 0)
    add("names", fmt::format("{}{}, {} done, {} failed, {} left out", s.names().total(), so_far(s),
                             s.names().done(), s.names().failed(), s.names().left_out()));
  for (const api::MissingName& name : s.names().missing())
    add(name.arrived() ? "changed" : "missing", printable(name.path()) + ": " + name.reason());
  for (const api::FileProgress& file : s.files()) {
    add("file",
        fmt::format("{} -> {}: {} of {} bytes{}", printable(file.source()), printable(file.destination()),
                    file.bytes_done(), file.size(), file.done() ? ", done" : ""));
    if (!file.digest_source().empty() || !file.digest_destination().empty()) {
      add("", digests_text(file));
    }
    for (const api::Digest& digest : file.digests()) add("", printable(digest.kind()) + " " + digest.hex());
  }
  return out;
}

struct ListFlags {
  std::vector<std::string> states;
  std::string peer;
  std::string since;
};

Result<int> list(const Context& context, const ListFlags& flags) {
  ListFilter filter{.states = flags.states, .peer = flags.peer, .since_unix_ns = {}};
  if (Status status = check_states(flags.states); !status) return status.error();
  if (!flags.since.empty()) {
    const auto since = parse_since(flags.since, unix_now_ns());
    if (!since) return Error{since.error().code, "--since " + since.error().message};
    filter.since_unix_ns = *since;
  }
  auto client = connect_to_node(context.node_directory());
  if (!client) return client.error();
  const auto reply = (*client)->list();
  if (!reply) return reply.error();
  const api::ListSessionsReply kept = filtered(*reply, filter);
  const bool terminal = context.environment.out_is_terminal;
  const size_t columns = terminal ? context.environment.err_columns() : kPlainColumns;
  context.print(api::sessions_json(kept), kept.sessions_size() == 0
                                              ? "no sessions\n"
                                              : session_table(kept, columns, terminal, unix_now_ns()));
  return 0;
}

Result<int> show(const Context& context, const SessionFlags& flags) {
  auto client = connect_to_node(context.node_directory());
  if (!client) return client.error();
  const auto session = (*client)->show(flags.id);
  if (!session) return session.error();
  std::string text = details(*session);
  if (flags.plot) {
    for (const std::string& line : rate_chart(*session, context.environment.err_columns(), kPlotRows))
      text += line + "\n";
  }
  context.print(api::session_json(*session), text);
  return 0;
}

Result<int> wait(const Context& context, const SessionFlags& flags) {
  auto client = connect_to_node(context.node_directory());
  if (!client) return client.error();
  FollowOptions options;
  options.quiet = flags.quiet;
  options.timeout_s = flags.timeout_s;
  options.timeout_exit_code = flags.timeout_exit_code;
  return follow_session(context, **client, flags.id, options);
}

using Change = Result<api::Session> (api::Client::*)(const std::string&);

// Asks for a change of the session's state, and says how it stands then. Its flows may take a moment to end.
template <Change change>
Result<int> ask(const Context& context, const SessionFlags& flags) {
  auto client = connect_to_node(context.node_directory());
  if (!client) return client.error();
  auto session = ((**client).*change)(flags.id);
  if (!session) return session.error();
  if (session->state() == api::Session::FINISHING) {
    session = (*client)->watch(session->id(), kSettleS, [](const api::Session& now) {
      return now.state() == api::Session::FINISHING;
    });
    if (!session) return session.error();
  }
  context.print(api::session_json(*session),
                fmt::format("session {} {}\n", printable(flags.id), api::state_name(*session)));
  return 0;
}

Result<int> go_on(const Context& context, const SessionFlags& flags) {
  auto client = connect_to_node(context.node_directory());
  if (!client) return client.error();
  const auto session = (*client)->show(flags.id);
  if (!session) return session.error();
  if (const Status status = bring_back_files(context, *session); !status) return status.error();
  // What waited for that process goes on by itself.
  if (session->has_local_files() && session->state() == api::Session::WAITING) {
    context.print(api::session_json(*session),
                  fmt::format("session {} {}\n", printable(flags.id), state_name(*session)));
    return 0;
  }
  return ask<&api::Client::go_on>(context, flags);
}

Result<int> limit(const Context& context, const SessionFlags& flags) {
  uint64_t rate_bps = 0;
  if (flags.rate != "none") {
    const auto parsed = rate_option("--rate", flags.rate);
    if (!parsed) return parsed.error();
    rate_bps = *parsed;
  }
  auto client = connect_to_node(context.node_directory());
  if (!client) return client.error();
  const auto session = (*client)->limit(flags.id, rate_bps);
  if (!session) return session.error();
  const uint64_t most_bps = session->rate_limit_bps();
  std::string text = fmt::format("session {} sends at most {}", printable(flags.id),
                                 format_rate(static_cast<double>(most_bps)));
  if (most_bps != 0 && (rate_bps == 0 || most_bps < rate_bps))
    text += ", as was agreed when it began (--rate, [port] rate of either node)";
  context.print(api::session_json(*session), text + "\n");
  return 0;
}

Result<int> prioritize(const Context& context, const SessionFlags& flags) {
  auto client = connect_to_node(context.node_directory());
  if (!client) return client.error();
  const auto session = (*client)->prioritize(flags.id, flags.priority);
  if (!session) return session.error();
  context.print(api::session_json(*session),
                fmt::format("session {} has priority {}\n", printable(flags.id), session->priority()));
  return 0;
}

Result<int> counters(const Context& context) {
  auto client = connect_to_node(context.node_directory());
  if (!client) return client.error();
  const auto reply = (*client)->counters();
  if (!reply) return reply.error();
  std::string text;
  for (const auto& counter : reply->counters()) {
    text += fmt::format("{:<28} {:>16} {:<10} {}\n", counter.name(), counter.value(), counter.unit(),
                        counter.help());
  }
  context.print(api::counters_json(*reply), text);
  return 0;
}

void add_list(CLI::App& session, Context& context) {
  auto flags = std::make_shared<ListFlags>();
  CLI::App* const command = session.add_subcommand("list", "List the sessions, the newest last");
  command->add_option("--state", flags->states, "Only those in this state; may be given more than once")
      ->type_name("STATE")
      ->check(arguments::told(state_words()))
      ->allow_extra_args(false);
  command->add_option("--peer", flags->peer, "Only those with this peer")->type_name("NODE");
  command
      ->add_option("--since", flags->since,
                   "Only those that began since then: a span (2h, 7d), a time of day, a date, or both")
      ->type_name("T");
  command->callback(
      [&context, flags] { context.action = [&context, flags] { return list(context, *flags); }; });
}

}  // namespace

void add_session_commands(CLI::App& app, Context& context) {
  CLI::App* session = app.add_subcommand("session", "Sessions of the node, and what can be done about them");
  session->require_subcommand(1);
  add_list(*session, context);
  const auto add = [&](const std::string& name, const std::string& about,
                       Result<int> (*work)(const Context&, const SessionFlags&)) {
    auto flags = std::make_shared<SessionFlags>();
    CLI::App* command = session->add_subcommand(name, about);
    command->add_option("id", flags->id, "Session, as 'sluice session list' shows it")
        ->required()
        ->type_name("ID");
    command->callback([&context, flags, work] {
      context.action = [&context, flags, work] { return work(context, *flags); };
    });
    return std::pair(command, flags);
  };
  const auto [showing, show_flags] = add("show", "Show one session", show);
  showing->add_flag("--plot", show_flags->plot, "Draw its rate over the time in which data moved");
  add_session_views(*session, context);
  add_log_commands(*session, context);
  add_move_commands(*session, context);
  add("pause", "Hold a session up, until 'continue'", ask<&api::Client::pause>);
  add("continue", "Let a session go on that was paused", go_on);
  add("cancel", "Cancel a session", ask<&api::Client::cancel>);
  const auto [limiting, limit_flags] =
      add("limit", "Set the most that a session may send, from now on", limit);
  limiting->add_option("--rate", limit_flags->rate, "In bit/s, such as 2G; none takes the limit away")
      ->required()
      ->type_name("RATE|none");
  const auto [ranking, rank_flags] =
      add("priority", "Set where a session stands among those that wait for their turn", prioritize);
  ranking->add_option("priority", rank_flags->priority, "-100 to 100: the higher goes first")
      ->required()
      ->type_name("N")
      ->transform(validator_of("priority"));
  const auto [waiting, flags] =
      add("wait", "Wait for the end of a session; its result is the exit status", wait);
  waiting->add_option("--timeout", flags->timeout_s, "Leave after so many seconds")
      ->type_name("S")
      ->transform(arguments::number(0, 1e9));
  waiting->add_option("--timeout-exit-code", flags->timeout_exit_code, "Exit status then (default: 124)")
      ->type_name("C")
      ->transform(arguments::whole(0, 255));
  waiting->add_flag("-q,--quiet", flags->quiet, "Show no progress");
  add_verify_command(app, context);
  app.add_subcommand("counters", "Show the counters of the dataplane")->callback([&context] {
    context.action = [&context] { return counters(context); };
  });
}

}  // namespace sluice::cli
