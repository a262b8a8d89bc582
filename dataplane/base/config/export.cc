// Which peers may do what beneath an export, and how much of it.
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

namespace {

constexpr std::string_view kEveryUser = "*";

}  // namespace

std::string Export::quotas_problem() const {
  for (const Quota& quota : quotas) {
    const std::string whose = quota.user == kEveryUser ? "every user"
                              : !quota.user.empty()    ? "user " + quota.user
                              : quota.peer.empty()     ? "every peer"
                                                       : "peer " + quota.peer;
    if (!quota.user.empty() && !quota.peer.empty())
      return "that for " + whose + " names a peer as well; write a section for each";
    const auto same = [&quota](const Quota& other) {
      return other.peer == quota.peer && other.user == quota.user;
    };
    if (std::ranges::count_if(quotas, same) > 1) return "there are two for " + whose + "; keep one";
    if (!quota.limits()) return "that for " + whose + " limits nothing; add a key, or remove the section";
    if (quota.peer.empty() || !peers) continue;
    if (std::ranges::find(*peers, quota.peer, &ExportPeer::name) == peers->end())
      return whose + " may not use the export; add it to peers, or remove the section";
  }
  return "";
}

Quota Export::quota_of(std::string_view peer) const {
  Quota for_all;
  for (const Quota& quota : quotas) {
    if (!quota.user.empty()) continue;
    if (quota.peer == peer) return quota;
    if (quota.peer.empty()) for_all = quota;
  }
  return for_all;
}

Quota Export::quota_of_user(std::string_view user) const {
  Quota for_all;
  for (const Quota& quota : quotas) {
    if (quota.user == user) return quota;
    if (quota.user == kEveryUser) for_all = quota;
  }
  return for_all;
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
