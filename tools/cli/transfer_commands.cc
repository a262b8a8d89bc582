// sluice send, sluice get.
// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "tools/cli/app.h"
#include "tools/cli/canceller.h"
#include "tools/cli/connect.h"
#include "tools/cli/dry_run.h"
#include "tools/cli/follow.h"
#include "tools/cli/format.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/local_files.h"
#include "tools/cli/remote_patterns.h"
#include "tools/cli/spool.h"
#include "tools/cli/sync.h"
#include "tools/cli/teller.h"
#include "tools/cli/transfer_flags.h"
#include "tools/cli/transfer_lists.h"
#include "tools/cli/tree_name.h"

namespace sluice::cli {
namespace {

Result<int> sync(const Context& context, const std::shared_ptr<api::Client>& client, Canceller& canceller,
                 const TransferFlags& flags, const api::TransferRequest& request) {
  const Result<SyncOutcome> outcome = sync_directory(context.environment, client, canceller, flags, request);
  if (!outcome) return outcome.error();
  context.print(outcome->object, outcome->text);
  for (const api::Session& session : outcome->ended)
    notify_end(context.environment, context.node_directory(), flags.notify, session);
  return outcome->exit_code;
}

// What comes is taken when it is known that the node answers, and the request is right.
Result<std::string> begin_from_stdin(const Context& context, api::Client& client, TransferFlags flags,
                                     const Canceller& canceller) {
  if (flags.dry_run || flags.sync || !flags.files_from.empty())
    return Error{ErrorCode::kUsage,
                 "-: standard input is one file: not with --dry-run, --sync or --files-from"};
  Result<Spool> spool = Spool::take(context.environment, flags.paths.back(), canceller);
  if (!spool) return spool.error();
  flags.paths.front() = spool->file().string();
  auto request = transfer_request(Direction::kSend, flags, context.environment.working_directory, nullptr);
  if (!request) return request.error();
  Result<std::string> id = begin_with_spool(context, client, std::get<api::SendRequest>(*request));
  if (id) spool->let_go();
  return id;
}

// Asked only if something on the command line could be at another node: what is wrong with it is told without
// one.
class NodeOnDemand {
 public:
  explicit NodeOnDemand(const Context& context) : context_(context) {}

  Result<std::shared_ptr<api::Client>> client() {
    if (client_) return client_;
    auto connected = connect_to_node(context_.node_directory());
    if (!connected) return connected.error();
    return client_ = std::move(*connected);
  }
  KnowsNode knows() {
    return [this](const std::string& name) {
      if (client() && !node_) node_ = client_->node();
      return node_ && *node_ && api::knows_peer(**node_, name);
    };
  }

 private:
  const Context& context_;
  std::shared_ptr<api::Client> client_;
  std::optional<Result<api::NodeReply>> node_;
};

Result<int> transfer(const Context& context, Direction direction, const TransferFlags& flags) {
  Canceller canceller(context.environment);
  // Before the client, whose threads shall not take the signals.
  const Interrupt interrupt([&canceller] { canceller.on_interrupt(); },
                            static_cast<int>(ErrorCode::kCancelled));
  NodeOnDemand node(context);
  auto request = transfer_request(direction, flags, context.environment.working_directory,
                                  &context.environment.in, node.knows());
  if (!request) return request.error();
  auto connected = node.client();
  if (!connected) return connected.error();
  const std::shared_ptr<api::Client> client = std::move(*connected);
  const bool from_stdin =
      direction == Direction::kSend && flags.paths.size() == 2 && is_standard(flags.paths[0]);
  if (flags.sync && !from_stdin) return sync(context, client, canceller, flags, *request);
  auto left_out = replace_patterns(*client, flags, *request, context.environment.err);
  if (!left_out) return left_out.error();
  name_tree(*client, &*request);
  if (flags.dry_run && !from_stdin) {
    const Result<int> code = dry_run(context, *client, *request);
    return code && *code == 0 && !left_out->empty() ? static_cast<int>(ErrorCode::kPartial) : code;
  }
  auto lists = TransferLists::of(flags, context, &context.environment.in, &*request);
  if (!lists) return lists.error();
  if (from_stdin && lists->any())
    return Error{ErrorCode::kUsage,
                 "-: standard input has no name yet: not with --manifest or --write-manifest"};
  if (Status names = lists->check_names(context, *client, *request); !names) return names.error();
  const Result<std::string> id = from_stdin ? begin_from_stdin(context, *client, flags, canceller)
                                            : begin_transfer(context, *client, *request);
  if (!id) return id.error();
  canceller.started(client, *id);
  if (flags.detach) {
    const auto session = client->show(*id);
    if (!session) return session.error();
    context.print(api::session_json(*session), printable(*id) + "\n");
    return 0;
  }
  FollowOptions options;
  options.quiet = flags.quiet;
  options.notify = flags.notify;
  options.lists = &*lists;
  options.left_out = std::move(*left_out);
  return follow_session(context, *client, *id, options);
}

void add_command(CLI::App& app, Context& context, Direction direction, const std::string& name,
                 const std::string& about, const std::string& operands, const std::string& paths) {
  auto flags = std::make_shared<TransferFlags>();
  CLI::App* command = app.add_subcommand(name, about);
  command->add_option("paths", flags->paths, paths)->required()->type_name(operands);
  if (direction == Direction::kGet) add_from(*command, *flags);
  add_command_flags(*command, *flags);
  command->callback([&context, flags, direction] {
    context.action = [&context, flags, direction] { return transfer(context, direction, *flags); };
  });
}

}  // namespace

void add_transfer_commands(CLI::App& app, Context& context) {
  add_command(
      app, context, Direction::kSend, "send", "Send files to another node", "SRC... NODE:PATH",
      "A source is a local file or directory, - for standard input, or memory:SIZE for generated bytes. "
      "NODE:SRC is at another node, which sends it: this one moves nothing. "
      "PATH begins with the name of an export of NODE, and ends in / where it is a directory; null: "
      "discards");
  add_command(app, context, Direction::kGet, "get", "Get files from another node", "NODE:SRC... PATH",
              "All sources are at one node, and may have wildcards (* ? [a-z]). With --from they are at "
              "several, and are "
              "written without NODE:. PATH is local; null: discards");
}

}  // namespace sluice::cli
