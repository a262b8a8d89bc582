// Which peers may do what beneath an export.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "dataplane/base/config/config.h"

namespace sluice::config {

std::optional<ExportPeer> ExportPeer::parse(std::string_view text) {
  constexpr std::array<std::string_view, 6> kModes = {"r", "w", "rw", "rm", "wm", "rwm"};
  const size_t colon = text.find(':');
  ExportPeer peer{.name = std::string(text.substr(0, colon)), .mode = {}};
  if (!valid_node_name(peer.name)) return std::nullopt;
  if (colon == std::string_view::npos) return peer;
  peer.mode = text.substr(colon + 1);
  return std::ranges::find(kModes, peer.mode) != kModes.end() ? std::optional(peer) : std::nullopt;
}

std::string ExportPeer::text() const { return name + (mode.empty() ? "" : ":" + mode); }

std::string Export::mode() const {
  return std::string(read ? "r" : "") + (write ? "w" : "") + (manage ? "m" : "");
}

std::string Export::peers_text() const {
  std::string out;
  if (!peers) return out;
  for (const ExportPeer& peer : *peers) out += (out.empty() ? "" : ", ") + peer.text();
  return out.empty() ? "nobody" : out;
}

std::string Export::peers_problem() const {
  if (!peers) return "";
  for (const ExportPeer& peer : *peers) {
    if (std::ranges::count(*peers, peer.name, &ExportPeer::name) > 1)
      return peer.name + " is there twice; keep one";
    if (peer.mode.find_first_not_of(mode()) != std::string::npos)
      return peer.text() + " is more than mode = \"" + mode() +
             "\" of the export; give the export this mode, and each peer its own";
  }
  return "";
}

Export Export::for_peer(std::string_view peer) const {
  Export out = *this;
  if (!peers) return out;
  const auto it = std::ranges::find(*peers, peer, &ExportPeer::name);
  const auto allows = [&](char right) {
    return it != peers->end() && (it->mode.empty() || it->mode.find(right) != std::string::npos);
  };
  out.read = read && allows('r');
  out.write = write && allows('w');
  out.manage = manage && allows('m');
  return out;
}

}  // namespace sluice::config
