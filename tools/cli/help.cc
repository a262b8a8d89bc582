// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/help.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <sstream>

#include "dataplane/base/arguments/arguments.h"

namespace sluice::cli {
namespace {

constexpr size_t kColumns = 80;
constexpr size_t kOptionColumns = 30;

struct Example {
  std::string_view command;
  std::string_view line;
  std::string_view about;
};

constexpr Example kExamples[] = {
    {"send", "sluice send /srv/data/run42.h5 beta:data/", "one file into the export data of beta"},
    {"send", "sluice send --rate 5G --deadline 2h30m /srv/data/run42 beta:data/", "a directory, in time"},
    {"send", "sluice send --sync --delete /srv/data/run42 beta:data/run42", "make it the same there"},
    {"send", "sluice send gamma:data/run42 beta:data/", "from gamma to beta: no byte comes here"},
    {"send", "sluice send -- -odd-name beta:data/", "a name that begins with a hyphen"},
    {"get", "sluice get beta:data/run42.h5 /srv/data/", "one file"},
    {"get", "sluice get 'beta:data/*.h5' /srv/data/", "all that fit, in quotes for the shell"},
    {"get", "sluice get --from beta,gamma data/run42.h5 /srv/data/", "one file, of which each sends a part"},
    {"get", "sluice get gamma:data/run42.h5 beta:data/", "from gamma to beta: no byte comes here"},
    {"run", "sluice run --check nightly.toml", "print the commands that it stands for"},
    {"run", "sluice run nightly.toml", "and run them"},
    {"watch", "sluice watch /srv/data/scope beta:data/scope", "what comes there, each file once"},
    {"watch", "sluice watch --marker .done --then remove /srv/data/scope beta:data/scope",
     "and is removed here"},
    {"session events", "sluice session events --exec /usr/local/bin/told", "a program, at each end"},
    {"session list", "sluice session list", "what runs, waits and has ended"},
    {"session show", "sluice session show --plot 3f2a", "with its rate over time"},
    {"session watch", "sluice session watch 3f2a", "live, on a terminal"},
    {"session events", "sluice --json session events 3f2a", "one JSON object a line, until it ends"},
    {"session log", "sluice session log --follow 3f2a", "what its lanes note"},
    {"session log-level", "sluice session log-level 3f2a packets", "each datagram, from now on"},
    {"session wait", "sluice session wait --timeout 3600 3f2a", "exit status: its result, or 124"},
    {"session pause", "sluice session pause 3f2a", "it keeps what has arrived"},
    {"session continue", "sluice session continue 3f2a", "from where it was"},
    {"session cancel", "sluice session cancel 3f2a", "its unfinished files go"},
    {"session limit", "sluice session limit 3f2a --rate 2G", "at most 2 Gbit/s, from now on"},
    {"session limit", "sluice session limit 3f2a --rate none", "no own limit"},
    {"session export", "sluice session export 3f2a --to gamma",
     "gamma goes on with it, from the file that this writes"},
    {"session export", "sluice session export 3f2a --withdraw", "it is to go on here after all"},
    {"session import", "sluice session import 3f2a.session", "at gamma"},
    {"session priority", "sluice session priority 3f2a 50", "before those with less"},
    {"verify", "sluice verify 3f2a", "read its files here back from the disk"},
    {"verify", "sluice verify /srv/run42 --against run42.sha256 --extra", "a tree at rest against a list"},
    {"verify", "sluice verify /srv/run42 --against run42.sha256 --resume run42.state",
     "run again: it resumes"},
    {"verify", "sluice verify /srv/run42 --write-manifest run42.b3 --digest blake3",
     "a list, as b3sum has it"},
    {"counters", "sluice --json counters", "for a program"},
    {"receipt", "sluice receipt 3f2a", "a signed statement of what arrived"},
    {"receipt", "sluice receipt --check run42.receipt", "who signed it, and whether it is whole"},
    {"console open", "sluice console open", "a link that signs you in"},
    {"console open", "sluice console open --role viewer", "as less than you may"},
    {"console sign-ins", "sluice console sign-ins", "who has signed in"},
    {"console revoke", "sluice console revoke all", "yours; of an operator all"},
    {"console setup", "sluice console setup --user sluice-console", "once, as root"},
    {"fleet plan", "sluice fleet plan run42 --from dtn1,dtn2:/scratch/run42 --to arc1,arc2:data/run42",
     "into the directory run42"},
    {"fleet submit", "sluice fleet submit --sbatch=--partition=dtn run42", "a job array of Slurm"},
    {"fleet status", "sluice fleet status run42", "how far all is"},
    {"fleet wait", "sluice fleet wait run42", "exit status: 0 if all has arrived"},
    {"fleet cancel", "sluice fleet cancel run42", "its jobs and their sessions"},
    {"fleet drop", "sluice fleet drop run42", "what ranges of cut files have left at the destination"},
    {"fleet retry", "sluice fleet retry run42", "failed shards alone"},
    {"fleet shard", "sluice fleet shard run42 7", "one shard, at this host's node"},
    {"fleet receipt", "sluice fleet receipt run42", "a signed statement of all that arrived"},
    {"bench", "sluice bench beta", "10 s, from memory to memory"},
    {"bench", "sluice bench --to data/ -n 10G beta", "into a file at beta, of which nothing stays"},
    {"probe integrity", "sluice probe integrity beta --transfers 100000",
     "4 MiB each; run again: it resumes"},
    {"probe integrity", "sluice probe integrity beta --packets 313985", "which beta reflects, whatever came"},
    {"ls", "sluice ls beta:", "what beta lets this node see"},
    {"ls", "sluice ls -lR beta:data/run42", "all below a directory"},
    {"stat", "sluice stat beta:data/run42.h5", "size, times, owner, checksum"},
    {"mkdir", "sluice mkdir -p beta:data/2026/11", "with those above it"},
    {"mv", "sluice mv beta:data/run42.h5 beta:data/done/", "into a directory"},
    {"rm", "sluice rm -r beta:data/old", "asks first, on a terminal"},
    {"node setup", "sluice node setup", "asks what it needs to know"},
    {"node setup", "sluice node setup --yes --export data=/srv/data:rw", "asks nothing"},
    {"node init", "sluice node init /etc/sluice --export data=/srv/data:rw", "a node on this host's sockets"},
    {"node init", "sluice node init /etc/sluice --enrol @token --at hub.example.org:7401",
     "signed by an authority"},
    {"node enrol", "sluice node enrol @token", "it keeps its key"},
    {"node run", "sluice node run --ephemeral --enrol @token -- sluice send run42 beta:data/",
     "a node for one command"},
    {"node trust", "sluice node trust beta beta.pem --address beta.example.org:7400", "pin its key"},
    {"node trust", "sluice node trust beta --successor", "take the new key that it offers"},
    {"node distrust", "sluice node distrust beta", "what runs with it is cancelled"},
    {"node allow", "sluice node allow beta", "where an authority stands for it"},
    {"node rotate", "sluice node rotate", "make a new key, and offer it to peers"},
    {"node rotate", "sluice node rotate --finish", "use it, once all peers have taken it"},
    {"node show", "sluice node show", "configuration, identity, peers, live status"},
    {"node show", "sluice node show --certificate", "for the operators of peers"},
    {"node log-level", "sluice node log-level peer=debug", "until the daemons are started anew"},
    {"node topology", "sluice node topology", "NUMA nodes, cores, ports, disks"},
    {"node reference", "sluice node reference", "all keys of node.toml"},
    {"authority init", "sluice authority init /etc/sluice-authority --domain dtn.example.org",
     "once for a site"},
    {"authority token", "sluice authority token /etc/sluice-authority --name beta --at hub.example.org:7401",
     "good for one node, for an hour"},
    {"authority tokens", "sluice authority tokens /etc/sluice-authority", "and who used them"},
    {"authority revoke", "sluice authority revoke /etc/sluice-authority beta", "a node, or a token"},
    {"authority serve", "sluice authority serve /etc/sluice-authority", "until a signal"},
    {"doctor", "sluice doctor", "this node and its host"},
    {"doctor", "sluice doctor beta", "and the way to a peer"},
    {"doctor", "sluice doctor --report", "all that somebody far away needs to know"},
    {"completion", "sluice completion bash", "a script for /etc/bash_completion.d"},
};

// As it is typed behind the program's name: "node init".
std::string path_of(const CLI::App& app) {
  if (app.get_parent() == nullptr) return "";
  const std::string above = path_of(*app.get_parent());
  return above.empty() ? app.get_name() : above + " " + app.get_name();
}

// In lines of at most `columns`, broken at blanks.
std::string wrapped(const std::string& text, size_t columns) {
  std::string out;
  size_t used = 0;
  for (const std::string& word : CLI::detail::split(text, ' ')) {
    if (used != 0 && used + 1 + word.size() > columns) {
      out += '\n';
      used = 0;
    }
    if (used != 0) out += ' ';
    out += word;
    used += word.size() + (used == 0 ? 0 : 1);
  }
  return out;
}

std::string exit_table() {
  std::string text = "Exit status:\n";
  for (int code = 0; code <= static_cast<int>(kErrorCodeLast); ++code) {
    std::string about = wrapped(std::string(exit_meaning(static_cast<ErrorCode>(code))), kColumns - 6);
    for (size_t at = about.find('\n'); at != std::string::npos; at = about.find('\n', at + 1))
      about.insert(at + 1, "      ");
    text += fmt::format("  {:>2}  {}\n", code, about);
  }
  return text;
}

class Help final : public CLI::Formatter {
 public:
  Help() {
    column_width(kOptionColumns);
    label("Positionals", "Arguments");
    label("Subcommands", "Commands");
    label("SUBCOMMAND", "COMMAND");
  }

  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    return is_positional ? arguments::value_words(*option).name : option->get_name(false, true);
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_positional() || option->get_items_expected_max() == 0) return "";
    return " " + arguments::value_words(*option).name;
  }
  std::string make_option_usage(const CLI::Option* option) const override {
    const std::string name = make_option_name(option, true);
    return option->get_required() ? name : "[" + name + "]";
  }
  std::string make_option_desc(const CLI::Option* option) const override {
    std::string text = option->get_description();
    if (const std::string allowed = arguments::value_words(*option).allowed(); !allowed.empty())
      text += (text.empty() ? "" : "; ") + allowed;
    if (!option->get_default_str().empty()) text += " (default: " + option->get_default_str() + ")";
    for (const CLI::Option* other : option->get_needs()) text += "; needs " + other->get_name();
    for (const CLI::Option* other : option->get_excludes()) text += "; not with " + other->get_name();
    return wrapped(text, kColumns - kOptionColumns);
  }
  std::string make_subcommand(const CLI::App* command) const override {
    std::ostringstream out;
    CLI::detail::format_help(out, command->get_name(),
                             wrapped(command->get_description(), kColumns - kOptionColumns), kOptionColumns);
    return out.str();
  }
  std::string make_footer(const CLI::App* app) const override {
    if (app->get_parent() == nullptr) return exit_table() + "\n" + app->get_footer() + "\n";
    std::string text;
    for (const std::string& line : example_lines(*app)) text += "  " + line + "\n";
    return text.empty() ? "" : "Examples:\n" + text;
  }
};

}  // namespace

void use_help(CLI::App& app) { app.formatter(std::make_shared<Help>()); }

std::vector<std::string> example_lines(const CLI::App& command) {
  const std::string path = path_of(command);
  std::vector<std::string> lines;
  size_t widest = 0;
  for (const Example& one : kExamples) {
    if (one.command == path) widest = std::max(widest, one.line.size());
  }
  for (const Example& one : kExamples) {
    if (one.command == path) lines.push_back(fmt::format("{:<{}}  # {}", one.line, widest, one.about));
  }
  return lines;
}

std::string_view exit_meaning(ErrorCode code) {
  static const std::map<ErrorCode, std::string_view> meanings = {
      {ErrorCode::kOk, "done; of a transfer, every byte is on disk and verified"},
      {ErrorCode::kInternal, "a defect in Sluice, or an answer of the system that nobody expected"},
      {ErrorCode::kUsage, "wrong command line, or no such session"},
      {ErrorCode::kConfiguration,
       "wrong key or value in node.toml, no usable node, or no right to its socket"},
      {ErrorCode::kDaemonNotRunning, "a daemon of the node does not answer, or went away meanwhile"},
      {ErrorCode::kPeerUntrusted, "the node name is unknown, or one node does not trust the other's key"},
      {ErrorCode::kPeerUnreachable, "no connection to the peer, or the peer does not know the session"},
      {ErrorCode::kSourceUnreadable, "the source is missing, not permitted, or no regular file or directory"},
      {ErrorCode::kOutsideExports, "the path lies beneath no export, or the export lacks the right"},
      {ErrorCode::kDestinationExists, "something has that name already, or another session is writing it"},
      {ErrorCode::kNoSpace, "the destination's file system is too full"},
      {ErrorCode::kIntegrity, "the digests of the nodes differ, or the source changed meanwhile"},
      {ErrorCode::kCancelled, "an operator cancelled the session, or said no when asked"},
      {ErrorCode::kDevice, "DPDK device, hugepages, CPUs or privileges"},
      {ErrorCode::kStalled, "nothing moved for too long"},
      {ErrorCode::kIncompatible, "no protocol version, CRC kind or chunk size in common"},
      {ErrorCode::kStorage, "a read, write or sync failed on a disk, or a directory is not where it was"},
      {ErrorCode::kResources, "a table is full, or a node has no file descriptor or memory left"},
      {ErrorCode::kTooSlow, "slower than --min-rate for a minute"},
      {ErrorCode::kDeadline, "--deadline cannot be kept, or is over with --deadline-policy stop or end"},
      {ErrorCode::kLate, "done and verified, but after --deadline"},
      {ErrorCode::kPartial, "some names did not arrive; all others did, and are verified"},
      {ErrorCode::kQuota, "more than a quota of the other node, or of this one, allows"},
      {ErrorCode::kAttributes, "extended attributes or ACLs that the destination cannot keep"},
      {ErrorCode::kSuperseded, "its lease was taken under a higher epoch, or by another node"},
      {ErrorCode::kMoved, "the session goes on at another node"},
  };
  const auto found = meanings.find(code);
  return found == meanings.end() ? "" : found->second;
}

}  // namespace sluice::cli
