// sluice ls, stat, mkdir, mv, rm: names at another node.
// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <functional>
#include <ostream>

#include "control/names/glob.h"
#include "tools/cli/app.h"
#include "tools/cli/connect.h"
#include "tools/cli/format.h"
#include "tools/cli/names_format.h"
#include "tools/cli/target.h"

namespace sluice::cli {
namespace {

struct NamesFlags {
  std::vector<std::string> paths;
  bool long_form = false;
  bool recursive = false;
  bool all = false;
  bool null = false;
  bool literal = false;
  bool parents = false;
  bool force = false;
  bool yes = false;
};

Result<Target> names_target(const std::string& text, const std::string& own) {
  auto target = split_target(text);
  if (!target) return usage(target.error().message + "; for files of this node use " + own);
  return target;
}

// The code of the first thing that went wrong is that of the command; each has its line.
class Problems {
 public:
  explicit Problems(const Context& context) : context_(context) {}

  void add(uint32_t code, const std::string& message) {
    if (first_ == 0) first_ = code == 0 ? static_cast<uint32_t>(ErrorCode::kInternal) : code;
    context_.environment.err << "sluice: " << printable(message) << "\n" << std::flush;
  }
  int exit_code() const { return static_cast<int>(first_); }

 private:
  const Context& context_;
  uint32_t first_ = 0;
};

// ---- ls ------------------------------------------------------------------------------------------

// Prints a list as it comes: a million names are not kept.
class ListPrinter {
 public:
  ListPrinter(const Context& context, const NamesFlags& flags, const Target& target, std::string base)
      : out_(context.environment.out),
        json_(context.json),
        flags_(flags),
        target_(target),
        base_(std::move(base)),
        problems_(context) {}

  // False: nobody reads it any more.
  bool print(const api::ListNamesReply& part) {
    for (const api::NameEntry& entry : part.entries()) print(entry);
    if (part.entries_size() != 0) out_.flush();
    return out_.good();
  }

  void end(const std::optional<Error>& error) {
    if (error) problems_.add(static_cast<uint32_t>(error->code), error->message);
    if (!json_) return;
    if (entries_ == 0) begin();
    api::Json rest = {{"complete", !error.has_value()}, {"entry_count", entries_}, {"failed", failed_}};
    if (error) rest["error"] = api::error_json(*error);
    out_ << "]," << api::to_line(rest).substr(1);
  }
  bool anything() const { return entries_ != 0; }
  int exit_code() const { return problems_.exit_code(); }

 private:
  void begin() {
    api::NameEntry asked;
    api::Json head = {{"schema", "sluice.names.v1"}, {"node", target_.node}};
    head["path"] = api::name_json(asked, target_.path)["path"];
    std::string line = api::to_line(head);
    line.resize(line.size() - 2);  // its end
    out_ << line << ",\"entries\":[";
  }

  void print(const api::NameEntry& entry) {
    const std::string path = entry.path().empty() ? target_.path : path_beneath(base_, entry.path());
    if (json_) {
      if (entries_ == 0) begin();
      std::string line = api::to_line(api::name_json(entry, path));
      line.pop_back();
      out_ << (entries_ == 0 ? "" : ",") << line;
    } else if (flags_.null) {
      out_ << path << '\0';
    } else if (entry.type() == api::NameEntry::UNKNOWN && entry.error_code() != 0) {
      // Nothing is known of it but the error.
    } else {
      out_ << (flags_.long_form ? long_line(entry, path) : escaped(path) + "\n");
    }
    ++entries_;
    if (entry.error_code() == 0) return;
    ++failed_;
    problems_.add(entry.error_code(), target_.node + ": " + entry.error());
  }

  std::ostream& out_;
  const bool json_;
  const NamesFlags& flags_;
  const Target& target_;
  const std::string base_;
  Problems problems_;
  uint64_t entries_ = 0;
  uint64_t failed_ = 0;
};

Result<int> list(const Context& context, const NamesFlags& flags) {
  auto target = names_target(flags.paths.front(), "ls");
  if (!target) return target.error();
  if (flags.null && (context.json || flags.long_form))
    return usage("--null prints names and nothing else; leave out --long and --json");
  api::ListNamesRequest request;
  request.set_peer(target->node);
  request.set_path(target->path);
  request.set_recursive(flags.recursive);
  request.set_unfinished(flags.all);
  request.set_glob(!flags.literal && names::is_pattern(target->path));
  auto client = connect_to_node(context.node_directory());
  if (!client) return client.error();
  const std::string base = request.glob() ? names::split_pattern(target->path).base : "";
  ListPrinter printer(context, flags, *target, base);
  const Status status = (*client)->list_names(
      request, [&printer](const api::ListNamesReply& part) { return printer.print(part); });
  if (!status && !printer.anything()) return status.error();
  printer.end(status ? std::nullopt : std::optional(status.error()));
  return printer.exit_code();
}

// ---- stat ----------------------------------------------------------------------------------------

Result<api::NameEntry> stat_one(api::Client& client, const Target& target) {
  api::ListNamesRequest request;
  request.set_peer(target.node);
  request.set_path(target.path);
  request.set_itself(true);
  std::optional<api::NameEntry> found;
  const Status status = client.list_names(request, [&found](const api::ListNamesReply& part) {
    if (part.entries_size() != 0) found = part.entries(0);
    return true;
  });
  if (!status) return status.error();
  if (!found) return Error{ErrorCode::kInternal, "sluice-control said nothing of " + target.path};
  return *found;
}

// Whoever cannot be reached now is not asked again at once.
bool hopeless(const Error& error) {
  return error.code == ErrorCode::kDaemonNotRunning || error.code == ErrorCode::kPeerUnreachable ||
         error.code == ErrorCode::kPeerUntrusted || error.code == ErrorCode::kConfiguration ||
         error.code == ErrorCode::kIncompatible;
}

Result<int> stat(const Context& context, const NamesFlags& flags) {
  std::vector<Target> targets;
  for (const std::string& text : flags.paths) {
    auto target = names_target(text, "stat");
    if (!target) return target.error();
    if (target->path.empty())
      return usage("'" + printable(text) + "' has no path; name an export, or what is in one");
    targets.push_back(std::move(*target));
  }
  auto client = connect_to_node(context.node_directory());
  if (!client) return client.error();
  Problems problems(context);
  api::Json entries = api::Json::array();
  for (const Target& target : targets) {
    const auto entry = stat_one(**client, target);
    if (!entry && (targets.size() == 1 || hopeless(entry.error()))) return entry.error();
    if (!entry) {
      problems.add(static_cast<uint32_t>(entry.error().code), entry.error().message);
      continue;
    }
    api::Json one = api::name_json(*entry, target.path);
    one["node"] = target.node;
    entries.push_back(std::move(one));
    if (entry->error_code() != 0) problems.add(entry->error_code(), target.node + ": " + entry->error());
    if (!context.json) context.environment.out << stat_text(*entry, target.path);
  }
  if (context.json)
    context.environment.out << api::to_line({{"schema", "sluice.stat.v1"}, {"entries", std::move(entries)}});
  return problems.exit_code();
}

// ---- mkdir, mv, rm -------------------------------------------------------------------------------

using Change = std::function<Result<api::NamesReply>(api::Client&, const Target&)>;

// Does it to each path; what went wrong with one is said, and the others are done.
Result<int> change_each(const Context& context, const std::vector<Target>& targets, const Change& change) {
  auto client = connect_to_node(context.node_directory());
  if (!client) return client.error();
  Problems problems(context);
  api::Json listed = api::Json::array();
  uint64_t entries = 0;
  uint64_t failed = 0;
  // Who said it stands in front of an answer, but not of an entry.
  const auto note = [&](const api::NameEntry& entry, const Target& target, const std::string& who) {
    problems.add(entry.error_code(), who + entry.error());
    listed.push_back(
        api::name_json(entry, entry.path().empty() ? target.path : path_beneath(target.path, entry.path())));
  };
  for (const Target& target : targets) {
    const auto reply = change(**client, target);
    if (!reply && (targets.size() == 1 || hopeless(reply.error()))) return reply.error();
    if (!reply) {
      api::NameEntry entry;
      entry.set_error_code(static_cast<uint32_t>(reply.error().code));
      entry.set_error(reply.error().message);
      note(entry, target, "");
      ++failed;
      continue;
    }
    entries += reply->entries();
    failed += reply->failed();
    for (const api::NameEntry& entry : reply->problems()) note(entry, target, target.node + ": ");
    const uint64_t untold = reply->failed() - std::min<uint64_t>(reply->failed(), reply->problems_size());
    if (untold != 0)
      problems.add(0, target.node + ": " + std::to_string(untold) + " further names could not be removed");
  }
  if (context.json)
    context.environment.out << api::to_line({{"schema", "sluice.changed.v1"},
                                             {"entry_count", entries},
                                             {"failed", failed},
                                             {"problems", std::move(listed)}});
  return problems.exit_code();
}

Result<std::vector<Target>> change_targets(const NamesFlags& flags, const std::string& own) {
  std::vector<Target> targets;
  for (const std::string& text : flags.paths) {
    auto target = names_target(text, own);
    if (!target) return target.error();
    if (target->path.empty()) return usage("'" + printable(text) + "' has no path; write NODE:EXPORT/PATH");
    targets.push_back(std::move(*target));
  }
  return targets;
}

Result<int> make_directory(const Context& context, const NamesFlags& flags) {
  const auto targets = change_targets(flags, "mkdir");
  if (!targets) return targets.error();
  return change_each(context, *targets, [&flags](api::Client& client, const Target& target) {
    api::MakeDirectoryRequest request;
    request.set_peer(target.node);
    request.set_path(target.path);
    request.set_parents(flags.parents);
    return client.make_directory(request);
  });
}

Result<int> move(const Context& context, const NamesFlags& flags) {
  const auto targets = change_targets(flags, "mv");
  if (!targets) return targets.error();
  if (targets->size() != 2) return usage("needs NODE:OLD and NODE:NEW");
  const Target& from = targets->front();
  const Target& to = targets->back();
  if (from.node != to.node)
    return usage("from " + from.node + " to " + to.node +
                 ": names are moved within one node; use 'sluice send'");
  return change_each(context, {from}, [&](api::Client& client, const Target&) {
    api::MoveNameRequest request;
    request.set_peer(from.node);
    request.set_from(from.path);
    request.set_to(to.path);
    request.set_replace(flags.force);
    return client.move_name(request);
  });
}

// Somebody at a terminal says yes; where nobody is, nobody is asked.
Status confirm(const Context& context, const std::vector<Target>& targets, bool recursive) {
  Environment& environment = context.environment;
  if (!environment.answer) return {};
  std::string what;
  for (const Target& target : targets)
    what += (what.empty() ? "" : ", ") + target.node + ":" + escaped(target.path);
  environment.err << "sluice: remove " << what << (recursive ? " and all that is in it" : "") << "? [y/N] "
                  << std::flush;
  const std::string answer = environment.answer();
  if (answer == "y" || answer == "Y" || answer == "yes") return {};
  return Error{ErrorCode::kCancelled, "nothing was removed"};
}

Result<int> remove(const Context& context, const NamesFlags& flags) {
  const auto targets = change_targets(flags, "rm");
  if (!targets) return targets.error();
  if (!flags.yes) {
    if (const Status status = confirm(context, *targets, flags.recursive); !status) return status.error();
  }
  return change_each(context, *targets, [&flags](api::Client& client, const Target& target) {
    api::RemoveNameRequest request;
    request.set_peer(target.node);
    request.set_path(target.path);
    request.set_recursive(flags.recursive);
    return client.remove_name(request);
  });
}

// ---- command lines -------------------------------------------------------------------------------

using FlagsPtr = std::shared_ptr<NamesFlags>;

CLI::App* add_command(CLI::App& app, Context& context, const FlagsPtr& flags, const std::string& name,
                      const std::string& about, Result<int> (*work)(const Context&, const NamesFlags&)) {
  CLI::App* command = app.add_subcommand(name, about);
  command->callback([&context, flags, work] {
    context.action = [&context, flags, work] { return work(context, *flags); };
  });
  return command;
}

void add_list(CLI::App& app, Context& context) {
  const auto flags = std::make_shared<NamesFlags>();
  CLI::App* ls = add_command(app, context, flags, "ls", "List names at another node", list);
  ls->add_option("path", flags->paths, "May have wildcards (* ? [a-z]); NODE: alone lists its exports")
      ->required()
      ->expected(1)
      ->type_name("NODE:PATH");
  ls->add_flag("-l,--long", flags->long_form, "Mode, links, owner, group, size and time as well");
  ls->add_flag("-R,--recursive", flags->recursive, "What is in directories as well");
  ls->add_flag("-a,--all", flags->all, "Unfinished files of transfers as well");
  ls->add_flag("-0,--null", flags->null, "Names as they are, each ended by a NUL");
  ls->add_flag("--literal", flags->literal, "Wildcards mean themselves");
}

}  // namespace

void add_names_commands(CLI::App& app, Context& context) {
  add_list(app, context);
  const auto stat_flags = std::make_shared<NamesFlags>();
  add_command(app, context, stat_flags, "stat", "Show what another node knows of a name", stat)
      ->add_option("paths", stat_flags->paths, "Names at one or more nodes")
      ->required()
      ->type_name("NODE:PATH...");

  const auto mkdir_flags = std::make_shared<NamesFlags>();
  CLI::App* mkdir =
      add_command(app, context, mkdir_flags, "mkdir", "Make directories at another node", make_directory);
  mkdir->add_option("paths", mkdir_flags->paths, "Names at one or more nodes")
      ->required()
      ->type_name("NODE:PATH...");
  mkdir->add_flag("-p,--parents", mkdir_flags->parents, "Those above as well; one that is there is no error");

  const auto mv_flags = std::make_shared<NamesFlags>();
  CLI::App* mv = add_command(app, context, mv_flags, "mv", "Move a name at another node", move);
  mv->add_option("paths", mv_flags->paths, "Into NEW, if that is a directory")
      ->required()
      ->type_name("NODE:OLD NODE:NEW");
  mv->add_flag("-f,--force", mv_flags->force, "Replace a file that has the new name");

  const auto rm_flags = std::make_shared<NamesFlags>();
  CLI::App* rm = add_command(app, context, rm_flags, "rm", "Remove names at another node", remove);
  rm->add_option("paths", rm_flags->paths, "Names at one or more nodes")
      ->required()
      ->type_name("NODE:PATH...");
  rm->add_flag("-r,--recursive", rm_flags->recursive, "Directories, and all that is in them");
  rm->add_flag("-y,--yes", rm_flags->yes, "Ask nothing");
}

}  // namespace sluice::cli
