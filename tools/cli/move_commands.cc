// sluice session export, sluice session import: a session goes to another node.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "control/client/json.h"
#include "dataplane/base/arguments/arguments.h"
#include "dataplane/base/unique_fd.h"
#include "tools/cli/app.h"
#include "tools/cli/connect.h"
#include "tools/cli/format.h"

namespace sluice::cli {
namespace {

struct MoveFlags {
  std::string id;
  std::string to;
  std::string file;
  uint32_t within_s = 0;
  bool withdraw = false;
};

// Made before the session is touched: where it cannot be written, nothing happens. Whoever has it and the
// other node's key can go on with the session, so it is its owner's alone.
class BundleFile {
 public:
  explicit BundleFile(std::filesystem::path path) : path_(std::move(path)) {}
  ~BundleFile() {
    if (fd_) ::unlink(path_.c_str());
  }
  BundleFile(const BundleFile&) = delete;
  BundleFile& operator=(const BundleFile&) = delete;

  Status open() {
    fd_ = UniqueFd(::open(path_.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600));
    if (fd_) return {};
    if (errno == EEXIST)
      return Error{ErrorCode::kDestinationExists,
                   printable(path_.string()) + ": exists already; name another file, or remove it"};
    return failed(errno);
  }
  Status write(const std::string& bytes) {
    for (size_t at = 0; at < bytes.size();) {
      const ssize_t written = ::write(fd_.get(), bytes.data() + at, bytes.size() - at);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return failed(written < 0 ? errno : ENOSPC);
      at += static_cast<size_t>(written);
    }
    if (::fsync(fd_.get()) != 0) return failed(errno);
    fd_ = UniqueFd();  // it stays
    return {};
  }

 private:
  Error failed(int reason) const {
    return {reason == ENOSPC ? ErrorCode::kNoSpace : ErrorCode::kStorage,
            fmt::format("{}: cannot be written: {}; name another file", printable(path_.string()),
                        std::strerror(reason))};
  }
  const std::filesystem::path path_;
  UniqueFd fd_;
};

Result<int> withdraw(const Context& context, const MoveFlags& flags) {
  auto client = connect_to_node(context.node_directory());
  if (!client) return client.error();
  api::ExportRequest request;
  request.set_id(flags.id);
  request.set_withdraw(true);
  if (const auto withdrawn = (*client)->export_session(request); !withdrawn) return withdrawn.error();
  const auto session = (*client)->show(flags.id);
  if (!session) return session.error();
  context.print(
      api::session_json(*session),
      fmt::format("session {} is here again, paused: 'sluice session continue {}' goes on with it. "
                  "If the peer has begun with the other node meanwhile, it ends here then (moved)\n",
                  printable(session->id()), printable(session->id().substr(0, 8))));
  return 0;
}

Result<int> export_session(const Context& context, const MoveFlags& flags) {
  if (flags.withdraw) {
    if (!flags.to.empty() || !flags.file.empty())
      return Error{ErrorCode::kUsage, "--withdraw: takes neither a node nor a file"};
    return withdraw(context, flags);
  }
  if (flags.to.empty())
    return Error{ErrorCode::kUsage, "--to: name the node that is to go on with the session"};
  auto client = connect_to_node(context.node_directory());
  if (!client) return client.error();
  const auto known = (*client)->show(flags.id);
  if (!known) return known.error();
  const std::string name = flags.file.empty() ? known->id() + ".session" : flags.file;
  const bool to_stdout = is_standard(flags.file);
  const std::filesystem::path path =
      to_stdout ? std::filesystem::path(name) : context.environment.working_directory / name;
  BundleFile file(path);
  const Status ready = to_stdout ? context.check_stdout_is_free("-") : file.open();
  if (!ready) return ready.error();
  api::ExportRequest request;
  request.set_id(known->id());
  request.set_to(flags.to);
  request.set_within_s(flags.within_s);
  const auto bundle = (*client)->export_session(request);
  if (!bundle) return bundle.error();
  const std::string done =
      fmt::format("session {} has ended here: at {} run 'sluice session import' with {}\n",
                  printable(known->id()), printable(flags.to), printable(path.string()));
  if (to_stdout) {
    context.environment.out << *bundle << std::flush;
    context.environment.err << done;
    return 0;
  }
  if (const Status written = file.write(*bundle); !written) return written.error();
  context.print(api::export_json(known->id(), flags.to, path.string(), bundle->size()), done);
  return 0;
}

Result<int> import_session(const Context& context, const MoveFlags& flags) {
  std::ifstream file;
  if (!is_standard(flags.file))
    file.open(context.environment.working_directory / flags.file, std::ios::binary);
  std::istream& in = is_standard(flags.file) ? context.environment.in : file;
  std::stringstream bytes;
  bytes << in.rdbuf();
  if (!in || in.bad())
    return Error{ErrorCode::kUsage,
                 fmt::format("{}: cannot be read: {}", printable(flags.file), std::strerror(errno))};
  auto client = connect_to_node(context.node_directory());
  if (!client) return client.error();
  const auto session = (*client)->import_session(bytes.str());
  if (!session) return session.error();
  context.print(api::session_json(*session),
                fmt::format("session {} goes on here: 'sluice session watch {}'\n", printable(session->id()),
                            printable(session->id().substr(0, 8))));
  return 0;
}

}  // namespace

void add_move_commands(CLI::App& session, Context& context) {
  const auto run = [&context](CLI::App* command, const std::shared_ptr<MoveFlags>& flags,
                              Result<int> (*work)(const Context&, const MoveFlags&)) {
    command->callback([&context, flags, work] {
      context.action = [&context, flags, work] { return work(context, *flags); };
    });
  };
  auto out = std::make_shared<MoveFlags>();
  CLI::App* const exporting =
      session.add_subcommand("export", "End a session here, so that another node goes on with it");
  exporting->add_option("id", out->id, "Session, as 'sluice session list' shows it")
      ->required()
      ->type_name("ID");
  exporting
      ->add_option("file", out->file,
                   "Where to put what the other node needs (ID.session); - is the standard output")
      ->type_name("FILE");
  exporting->add_option("--to", out->to, "The node that goes on with it; it alone may")->type_name("NODE");
  exporting->add_option("--within", out->within_s, "By then the other node has begun, in seconds (a day)")
      ->type_name("S")
      ->transform(arguments::whole(1, 30 * 86400));
  exporting->add_flag("--withdraw", out->withdraw,
                      "It is to go on here after all, if no other node has begun");
  run(exporting, out, export_session);
  auto in = std::make_shared<MoveFlags>();
  CLI::App* const importing =
      session.add_subcommand("import", "Go on with a session that another node has exported to this one");
  importing->add_option("file", in->file, "What 'sluice session export' wrote there; - is the standard input")
      ->required()
      ->type_name("FILE");
  run(importing, in, import_session);
}

}  // namespace sluice::cli
