// Which peers there are and whether they answer, and what a closer look at one of them found.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "dataplane/base/counted.h"
#include "tools/doctor/findings.h"

namespace sluice::doctor {
namespace {

constexpr double kClockWarnS = 0.1;       // beyond that logs of two nodes cannot be read side by side
constexpr double kLossWarnPercent = 0.1;  // what a good path never loses at a rate that it carries

void check_clock(const PeerLook& look, std::vector<Finding>& out) {
  const double offset_s = static_cast<double>(look.clock_offset_ns) * 1e-9;
  const double error_s = static_cast<double>(look.clock_error_ns) * 1e-9;
  const std::string text = fmt::format(
      "the clock of {} is {:.6f} s {}, give or take {:.6f} s (half of the control stream's round trip)",
      look.name, std::abs(offset_s), offset_s < 0 ? "behind" : "ahead", error_s);
  if (std::abs(offset_s) - error_s > kClockWarnS) {
    warn(out, "peer_clock", text, "timedatectl set-ntp true, at both nodes");
  } else {
    pass(out, "peer_clock", text);
  }
}

void check_path(const PeerLook& look, std::vector<Finding>& out) {
  if (!look.path_problem.empty()) {
    return fail(
        out, "path", fmt::format("nothing went over the data port to {}: {}", look.name, look.path_problem),
        "sluice session list, and [port] of both nodes: address4, gateway4, udp_port_base; firewalls");
  }
  if (look.narrow) {
    warn(out, "path_mtu",
         fmt::format("the path to {} carries chunks of {} bytes, the ports longer ones", look.name,
                     look.chunk_bytes),
         "tracepath to its data address finds the hop; raise that MTU, or lower [port] mtu at both nodes");
  } else {
    pass(out, "path_mtu",
         fmt::format("chunks of {} bytes reach {}, as long as was asked for", look.chunk_bytes, look.name));
  }
  const double percent =
      look.datagrams == 0 ? 0 : 100 * static_cast<double>(look.lost) / static_cast<double>(look.datagrams);
  const std::string text =
      fmt::format("{} of {} were lost on the way to {} ({:.2f} %), round trip {:.0f} us", look.lost,
                  base::counted(look.datagrams, "datagram"), look.name, percent, look.rtt_us);
  if (percent > kLossWarnPercent) {
    warn(out, "path_loss", text,
         fmt::format("sluice bench {} --rate RATE finds the rate that the path carries", look.name));
  } else {
    pass(out, "path_loss", text);
  }
  if (look.no_room > 0) {
    warn(
        out, "peer_room",
        fmt::format("{} dropped {} for want of a buffer", look.name, base::counted(look.no_room, "datagram")),
        "raise [dataplane] extents_per_worker there");
  }
}

}  // namespace

void check_peers(const Facts& facts, std::vector<Finding>& out) {
  for (const std::string& problem : facts.trust_problems) {
    if (hidden(facts, problem))
      warn(out, "peer", unseen(facts), as_owner(facts));
    else
      fail(out, "peer", problem, "correct or remove the file: sluice-control does not start with it");
  }
  if (!facts.node->ca_file.empty() && facts.trust_problems.empty()) {
    pass(out, "peer", "[control] ca_file stands for peers");
  } else if (facts.peers.empty() && facts.trust_problems.empty()) {
    warn(out, "peer", "none is trusted yet", "sluice node trust NAME CERT.pem --address HOST:PORT");
  }
  for (const PeerFacts& peer : facts.peers) {
    if (peer.address.empty()) {
      pass(out, "peer", fmt::format("{} calls this node", peer.name));
    } else if (peer.problem.empty()) {
      pass(out, "peer", fmt::format("{} answers at {}", peer.name, peer.address));
    } else {
      fail(out, "peer", fmt::format("{} at {}: {}", peer.name, peer.address, peer.problem),
           "start sluice-control there, let its port through the firewalls, or correct --address (sluice "
           "node trust)");
    }
  }
}

void check_peer_look(const Facts& facts, std::vector<Finding>& out) {
  if (!facts.peer_look) return;
  const PeerLook& look = *facts.peer_look;
  if (!look.problem.empty()) {
    const auto peer = std::ranges::find(facts.peers, look.name, &PeerFacts::name);
    if (peer != facts.peers.end() && peer->address.empty())
      return warn(out, "peer_asked",
                  fmt::format("{} calls this node, and cannot be called: it was not asked", look.name),
                  "run 'sluice doctor' with the name of this node there");
    return fail(out, "peer_asked", fmt::format("{}: {}", look.name, look.problem), look.remedy);
  }
  pass(out, "peer_asked",
       fmt::format("{} is trusted, trusts this node, and answers in {:.3f} ms", look.name,
                   static_cast<double>(look.round_trip_ns) * 1e-6));
  const std::string own = "sluice " + facts.version;
  if (look.software == own) {
    pass(out, "peer_version", fmt::format("{} runs {}, as this command", look.name, look.software));
  } else {
    warn(out, "peer_version", fmt::format("{} runs {}, this command is {}", look.name, look.software, own),
         "bring both nodes to one version");
  }
  check_clock(look, out);
  if (look.spaces.empty()) {
    warn(out, "peer_space", fmt::format("{} has no export that this node may write", look.name),
         "[[export]] mode and peers in its node.toml");
  }
  for (const PeerSpace& space : look.spaces) {
    const double free = space.size_bytes == 0
                            ? 1
                            : static_cast<double>(space.free_bytes) / static_cast<double>(space.size_bytes);
    const std::string text = fmt::format("{} MiB are free beneath {}:{} ({:.1f} %)", space.free_bytes >> 20,
                                         look.name, space.name, 100 * free);
    free < kLittleSpace ? warn(out, "peer_space", text, "make room there") : pass(out, "peer_space", text);
  }
  check_path(look, out);
}

}  // namespace sluice::doctor
