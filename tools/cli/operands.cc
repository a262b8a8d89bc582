// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/operands.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <ostream>

#include "control/names/glob.h"
#include "control/proto/session_state.h"
#include "dataplane/base/arguments/arguments.h"
#include "tools/cli/connect.h"
#include "tools/cli/format.h"
#include "tools/cli/progress.h"
#include "tools/cli/target.h"

namespace sluice::cli {
namespace {

constexpr double kLimitS = 1.5;  // somebody waits with a finger on a key
constexpr size_t kOperandsMax = 400;

enum class Operands : uint8_t { kPeers, kNames, kPatterns, kSessions };

// kPatterns: names, which the command takes for patterns.
const std::map<std::string, Operands>& operands_of_commands() {
  static const std::map<std::string, Operands> all = {
      {"send", Operands::kNames},
      {"get", Operands::kPatterns},
      {"watch", Operands::kNames},
      {"ls", Operands::kPatterns},
      {"stat", Operands::kNames},
      {"mkdir", Operands::kNames},
      {"mv", Operands::kNames},
      {"rm", Operands::kNames},
      {"bench", Operands::kPeers},
      {"probe integrity", Operands::kPeers},
      {"doctor", Operands::kPeers},
      {"node trust", Operands::kPeers},
      {"node distrust", Operands::kPeers},
      {"session show", Operands::kSessions},
      {"session watch", Operands::kSessions},
      {"session events", Operands::kSessions},
      {"session log", Operands::kSessions},
      {"session log-level", Operands::kSessions},
      {"session wait", Operands::kSessions},
      {"session pause", Operands::kSessions},
      {"session continue", Operands::kSessions},
      {"session cancel", Operands::kSessions},
      {"session limit", Operands::kSessions},
      {"session priority", Operands::kSessions},
      {"session export", Operands::kSessions},
      {"verify", Operands::kSessions},
      {"receipt", Operands::kSessions},
  };
  return all;
}

class Offer {
 public:
  Offer(std::ostream& out, const std::string& word) : out_(out), word_(word) {}
  // False: there are enough.
  bool add(const std::string& word, const std::string& about) {
    const bool one_line = std::none_of(word.begin(), word.end(), [](unsigned char c) { return c < ' '; });
    if (one_line && word.starts_with(word_)) {
      out_ << word << "\t" << printable(about) << "\n";
      ++count_;
    }
    return count_ < kOperandsMax;
  }

 private:
  std::ostream& out_;
  const std::string& word_;
  size_t count_ = 0;
};

// As "bash" is one of `completion`.
void offer_words(const CLI::App& app, const std::string& command, Offer& offer) {
  const CLI::App* at = &app;
  for (const std::string& name : CLI::detail::split(command, ' ')) {
    const auto found = at->get_subcommands([&name](const CLI::App* one) { return one->get_name() == name; });
    if (found.empty()) return;
    at = found.front();
  }
  for (const CLI::Option* const option : at->get_options()) {
    if (!option->get_positional()) continue;
    for (const std::string& word : arguments::value_words(*option).offered()) offer.add(word, "");
  }
}

void offer_peers(api::Client& client, const std::string& end, Offer& offer) {
  const auto node = client.node();
  if (!node) return;
  for (const api::Peer& peer : node->peers()) {
    if (!offer.add(peer.name() + end, peer.address().empty() ? "calls this node" : peer.address())) return;
  }
}

// A name that has a wildcard means itself only behind backslashes; one without any is no pattern.
std::string as_pattern(const std::string& name) {
  if (!names::is_pattern(name)) return name;
  std::string out;
  for (const char c : name) {
    if (std::string_view("*?[\\").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string without_backslashes(const std::string& pattern) {
  if (!names::is_pattern(pattern)) return pattern;
  std::string out;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '\\' && i + 1 < pattern.size()) ++i;
    out += pattern[i];
  }
  return out;
}

void offer_names(api::Client& client, const Target& target, bool patterns, Offer& offer) {
  const size_t slash = target.path.rfind('/');
  const std::string typed = slash == std::string::npos ? "" : target.path.substr(0, slash + 1);
  api::ListNamesRequest request;
  request.set_peer(target.node);
  request.set_path(patterns ? without_backslashes(typed) : typed);
  (void)client.list_names(request, [&](const api::ListNamesReply& part) {
    for (const api::NameEntry& entry : part.entries()) {
      const bool directory = typed.empty() || entry.type() == api::NameEntry::DIRECTORY;
      const std::string name = patterns ? as_pattern(entry.path()) : entry.path();
      const std::string about = directory ? "directory" : format_bytes(entry.size());
      if (entry.error_code() == 0 &&
          !offer.add(target.node + ":" + typed + name + (directory ? "/" : ""), about))
        return false;
    }
    return true;
  });
}

void offer_sessions(api::Client& client, Offer& offer) {
  const auto reply = client.list();
  if (!reply) return;
  for (auto session = reply->sessions().rbegin(); session != reply->sessions().rend(); ++session) {
    const std::string id = session->id();
    const std::string about = api::state_name(*session) + ", " + session->direction() + " " +
                              session->peer() + ", " + session_subject(*session);
    if (!offer.add(id, about)) return;
  }
}

}  // namespace

void print_operands(const CLI::App& app, const Context& context, const OperandQuestion& question) {
  Offer offer(context.environment.out, question.word);
  offer_words(app, question.command, offer);
  const auto found = operands_of_commands().find(question.command);
  if (found == operands_of_commands().end()) return;
  const auto client = connect_to_node(context.node_directory());
  if (!client) return;
  (*client)->limit_time(kLimitS);
  if (found->second == Operands::kSessions) return offer_sessions(**client, offer);
  if (found->second == Operands::kPeers) return offer_peers(**client, "", offer);
  // A local name, as long as no colon has made a node of it.
  if (question.word.find(':') == std::string::npos) {
    if (question.word.find('/') == std::string::npos) offer_peers(**client, ":", offer);
    return;
  }
  if (const auto target = split_target(question.word))
    offer_names(**client, *target, found->second == Operands::kPatterns, offer);
}

}  // namespace sluice::cli
