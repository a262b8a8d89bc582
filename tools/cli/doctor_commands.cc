// sluice doctor [NODE].
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <ctime>

#include "control/client/requests.h"
#include "control/identity/identity.h"
#include "control/proto/session_state.h"
#include "dataplane/base/utc.h"
#include "tools/cli/app.h"
#include "tools/cli/connect.h"
#include "tools/cli/format.h"
#include "tools/cli/progress.h"
#include "tools/cli/report.h"
#include "tools/doctor/checks.h"
#include "tools/doctor/gather.h"
#include "tools/doctor/host.h"

namespace sluice::cli {
namespace {

// What sluice-control says of itself.
struct Answers {
  Result<api::NodeReply> node;
  Result<api::CountersReply> counters;
  bool connected = false;
};

Answers ask_daemon(const std::filesystem::path& directory) {
  const auto client = connect_to_node(directory);
  if (!client) return {client.error(), client.error(), false};
  return {(*client)->node(), (*client)->counters(), true};
}

doctor::DaemonFacts facts_of(const Answers& answers) {
  doctor::DaemonFacts facts;
  const Result<api::NodeReply>& reply = answers.node;
  if (!reply) {
    facts.problem = reply.error().message;
    facts.stands_still = answers.connected && reply.error().code == ErrorCode::kDaemonNotRunning;
    return facts;
  }
  facts.version = reply->version();
  facts.attached = reply->dataplane_attached();
  facts.hugepages = reply->hugepages();
  facts.fallback_for = reply->fallback().device();
  facts.fallback_reason = reply->fallback().reason();
  return facts;
}

std::string text_of(const std::vector<doctor::Finding>& findings) {
  std::string text;
  size_t count[3] = {};
  for (const doctor::Finding& finding : findings) {
    ++count[static_cast<size_t>(finding.level)];
    text += fmt::format("{}  {:<14} {}\n", doctor::level_name(finding.level), finding.check,
                        printable(finding.text));
    if (!finding.remedy.empty()) text += fmt::format("{:>21}{}\n", "-> ", printable(finding.remedy));
  }
  return text + fmt::format("{} pass, {} warn, {} fail\n", count[0], count[1], count[2]);
}

api::Json json_of(const std::vector<doctor::Finding>& findings) {
  api::Json checks = api::Json::array();
  for (const doctor::Finding& finding : findings) {
    checks.push_back({{"check", finding.check},
                      {"level", doctor::level_name(finding.level)},
                      {"text", finding.text},
                      {"remedy", finding.remedy}});
  }
  return {{"schema", "sluice.doctor.v1"},
          {"worst", doctor::level_name(doctor::worst(findings))},
          {"checks", std::move(checks)}};
}

// ---- a peer ------------------------------------------------------------------------------------

constexpr int kQuestions = 3;                  // the shortest round trip tells the clock best
constexpr uint64_t kProbeBytes = 32ULL << 20;  // from memory into nothing: neither node's disk has part in it
constexpr uint64_t kProbeRateBps =
    1'000'000'000;  // so that a path which carries it shows no loss of its own making
constexpr double kProbeTimeoutS = 30;

// "cannot do it: why; what to do": the last part.
std::string last_part(const std::string& message) {
  const size_t at = message.rfind("; ");
  return at == std::string::npos ? "" : message.substr(at + 2);
}

std::string remedy_of(const Error& error, const std::string& peer, bool pinned) {
  switch (error.code) {
    case ErrorCode::kPeerUnreachable:
      return "start sluice-control there, let its port through the firewalls, or correct --address (sluice "
             "node "
             "trust)";
    case ErrorCode::kPeerUntrusted:
      if (!pinned)
        return fmt::format(
            "correct the name ('sluice node show' lists the peers), or sluice node trust {} CERT.pem "
            "--address "
            "HOST:PORT, at both nodes (sluice node show --certificate)",
            peer);
      if (const std::string said = last_part(error.message); !said.empty()) return said;
      return fmt::format(
          "sluice node trust {} CERT.pem --replace, at both nodes (sluice node show --certificate)", peer);
    case ErrorCode::kIncompatible:
      return "bring both nodes to one version";
    case ErrorCode::kDaemonNotRunning:
      return "start sluice-control of this node";
    default:
      return fmt::format("sluice node trust {}{} --address HOST:PORT", peer, pinned ? "" : " CERT.pem");
  }
}

// What a short transfer tells of the path. It is one like all others: the peer must trust this node for it.
void probe_path(api::Client& client, doctor::PeerLook* look) {
  api::SendRequest request;
  request.set_peer(look->name);
  request.add_sources(fmt::format("memory:{}", kProbeBytes));
  request.set_destination("null:");
  request.mutable_options()->set_rate_bps(kProbeRateBps);
  const auto id = client.begin(request);
  if (!id) {
    look->path_problem = id.error().message;
    return;
  }
  auto session =
      client.watch(*id, kProbeTimeoutS, [](const api::Session& now) { return now.error_code() == 0; });
  if (session && !api::stands_still(*session)) {
    look->path_problem = !session->error().empty() ? session->error()
                         : session->waiting_for().empty()
                             ? fmt::format("not over within {} s", kProbeTimeoutS)
                             : session->waiting_for();
    (void)client.cancel(*id);
    return;
  }
  if (!session || session->state() != api::Session::SUCCEEDED) {
    look->path_problem = session ? session->error() : session.error().message;
    return;
  }
  look->datagrams = api::datagrams_sent(*session);
  look->lost = session->lost();
  look->no_room = session->no_room();
  look->rtt_us = session->rtt_us();
  look->goodput_bps = session->goodput_bps();
  look->chunk_bytes = session->chunk_bytes();
  look->narrow = session->chunk_reason() == "path";
}

doctor::PeerLook look_at_peer(const std::filesystem::path& directory, const std::string& peer) {
  doctor::PeerLook look{.name = peer};
  const auto client = connect_to_node(directory);
  const auto found = identity::find_peer(directory, peer);
  const bool pinned = found || found.error().code != ErrorCode::kPeerUntrusted;
  const auto give_up = [&look, pinned](const Error& error) {
    look.problem = error.message;
    look.remedy = remedy_of(error, look.name, pinned);
    return look;
  };
  if (!client) return give_up(client.error());
  for (int n = 0; n < kQuestions; ++n) {
    const auto answer = (*client)->about(peer);
    if (!answer) return give_up(answer.error());
    if (n > 0 && answer->clock_error_ns() >= look.clock_error_ns) continue;
    look.software = answer->software();
    look.clock_offset_ns = answer->clock_offset_ns();
    look.clock_error_ns = answer->clock_error_ns();
    look.round_trip_ns = answer->round_trip_ns();
    look.spaces.clear();
    for (const api::PeerSpace& space : answer->spaces())
      look.spaces.push_back(
          {.name = space.name(), .size_bytes = space.size_bytes(), .free_bytes = space.free_bytes()});
  }
  probe_path(**client, &look);
  return look;
}

struct Wishes {
  std::string peer;  // empty: this node alone
  bool report = false;
};

Result<int> examine(const Context& context, const Wishes& wishes) {
  const std::string& peer = wishes.peer;
  const auto directory = context.existing_node_directory();
  if (!directory) return directory.error();
  doctor::Facts facts = doctor::gather(*directory);
  const Answers answers = ask_daemon(*directory);
  if (facts.node) {
    facts.daemon = facts_of(answers);
    doctor::gather_processes(*facts.node, &facts);
  }
  if (!peer.empty()) {
    facts.peer_look = facts.daemon.stands_still
                          ? doctor::PeerLook{.name = peer, .problem = facts.daemon.problem}
                          : look_at_peer(*directory, peer);
  }
  const std::vector<doctor::Finding> findings = doctor::check(facts);
  if (wishes.report) {
    context.environment.out << report_text(
        {.when = base::utc_text(int64_t{std::time(nullptr)} * 1'000'000'000),
         .node = facts,
         .host = doctor::gather_host("/"),
         .cards = doctor::gather_cards("/", doctor::gather_addresses()),
         .live = answers.node,
         .counters = answers.counters,
         .findings = text_of(findings)});
  } else {
    context.print(json_of(findings), text_of(findings));
  }
  const bool failed = doctor::worst(findings) == doctor::Level::kFail;
  return failed ? static_cast<int>(ErrorCode::kConfiguration) : 0;
}

}  // namespace

void add_doctor_command(CLI::App& app, Context& context) {
  auto wishes = std::make_shared<Wishes>();
  CLI::App* const command =
      app.add_subcommand("doctor",
                         "Look at this node and its host, and at a peer: what is well, what is not, and what "
                         "mends it");
  command->add_option("node", wishes->peer, "Peer to call and to send 32 MiB of memory into nothing to")
      ->type_name("NODE");
  command->add_flag(
      "--report", wishes->report,
      "Print one text for whoever is to help: host, cards, configuration, counters, what was found");
  command->callback(
      [&context, wishes] { context.action = [&context, wishes] { return examine(context, *wishes); }; });
}

}  // namespace sluice::cli
