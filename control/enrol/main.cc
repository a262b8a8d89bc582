// sluice-enrol: what `sluice authority serve` and `sluice node init --enrol` do with the network.
//
// A program of its own, since the command is linked statically and looks up no names; and since whoever
// serves strangers with the authority's key shall do nothing else, in a sandbox.
// SPDX-License-Identifier: Apache-2.0
#include <google/protobuf/stubs/logging.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <asio/co_spawn.hpp>
#include <asio/io_context.hpp>
#include <asio/signal_set.hpp>
#include <asio/use_awaitable.hpp>
#include <csignal>
#include <cstdio>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>

#include "control/enrol/enrol.h"
#include "dataplane/base/arguments/arguments.h"
#include "dataplane/base/config/config.h"
#include "dataplane/base/daemon/daemon.h"
#include "dataplane/base/daemon/service.h"
#include "dataplane/base/log.h"
#include "dataplane/base/read_rest.h"
#include "dataplane/base/sandbox/profiles.h"

namespace sluice::enrol {
namespace {

struct Flags {
  std::string directory;
  std::string listen = "0.0.0.0:" + std::to_string(site::kEnrolPort);
  std::string name;
  std::string at;
  uint32_t timeout_s = 60;
  bool json = false;
};

Result<sandbox::State> confine(const std::filesystem::path& directory, uint16_t port) {
  const sandbox::ControlNeeds needs{.node = directory,
                                    .authorities = {},
                                    .run = directory,
                                    .state = directory,
                                    .exports = {},
                                    .tcp_ports = {port}};
  return sandbox::apply(sandbox::control_profile(needs), true);
}

Status run_server(const Flags& flags) {
  daemon::start_log("sluice-enrol", log::kOfControl, [](const char*) { return "info"; });
  const std::filesystem::path directory = std::filesystem::absolute(flags.directory);
  auto site = site::Site::open(directory);
  if (!site) return site.error();
  if (Status locked = site->lock(); !locked) return locked;
  auto service = daemon::Service::from_environment();
  asio::io_context io(1);
  asio::signal_set signals(io, SIGTERM, SIGINT);
  auto server = serve(io, *site, flags.listen);
  if (!server) return server.error();
  const auto confined = confine(directory, (*server)->port());
  if (!confined) return confined.error();
  signals.async_wait([&](std::error_code error, int signal) {
    if (error) return;
    const Counts& counts = (*server)->counts();
    spdlog::info("signal {}: stopping; {} enrolled, {} refused, {} failed, {} too slow, {} let go", signal,
                 counts.enrolled, counts.refused, counts.failed, counts.timed_out, counts.let_go);
    service.stopping();
    io.stop();
  });
  spdlog::info("sandbox: {}", confined->text());
  spdlog::info("the authority {}, key {}, enrols nodes at {} (port {})", site->subject(), site->fingerprint(),
               flags.listen, (*server)->port());
  service.ready("enrols nodes");
  io.run();
  return {};
}

asio::awaitable<void> keep(site::Token token, Newcomer newcomer, Result<site::Enrolled>& into) {
  into = co_await call(token, newcomer);
}

Status run_client(const Flags& flags) {
  const auto token = site::parse_token(base::read_rest(std::cin));
  if (!token) return token.error();
  const std::string& address = flags.at.empty() ? token->address : flags.at;
  if (address.empty())
    return Error{ErrorCode::kUsage,
                 "the token does not say where the authority's holder serves; give --at HOST:PORT"};
  asio::io_context io(1);
  Result<site::Enrolled> enrolled = Error{ErrorCode::kInternal, "the enrolment did not end"};
  const Newcomer newcomer{.directory = flags.directory,
                          .name = flags.name,
                          .address = address,
                          .timeout_ms = flags.timeout_s * 1000};
  asio::co_spawn(io, keep(*token, newcomer, enrolled), [&io](std::exception_ptr) { io.stop(); });
  io.run();
  if (!enrolled) return enrolled.error();
  const nlohmann::json told = {{"domain", enrolled->domain}, {"crl", !enrolled->crl_pem.empty()}};
  std::cout << told.dump() << "\n" << std::flush;
  return {};
}

int end(const Status& status, bool json) {
  if (status) return 0;
  std::fprintf(stderr, "sluice-enrol: %s\n", status.error().message.c_str());
  const Error& error = status.error();
  const nlohmann::json told = {{"schema", "sluice.error.v1"},
                               {"code", static_cast<int>(error.code)},
                               {"name", error_code_name(error.code)},
                               {"message", error.message}};
  if (json) std::cout << told.dump() << "\n" << std::flush;
  return static_cast<int>(status.error().code);
}

}  // namespace
}  // namespace sluice::enrol

int main(int argc, char** argv) {
  using namespace sluice;
  google::protobuf::SetLogHandler(nullptr);  // it would print a line for each malformed text of a caller
  std::signal(SIGPIPE, SIG_IGN);
  ::umask(077);
  enrol::Flags flags;
  CLI::App app("Enrols nodes: for 'sluice authority serve' and 'sluice node init --enrol'.", "sluice-enrol");
  app.require_subcommand(1);
  CLI::App* const serve = app.add_subcommand("serve", "Sign the keys of nodes that come with a token");
  serve->add_option("directory", flags.directory, "The authority's")->required()->type_name("DIR");
  serve->add_option("--listen", flags.listen, "Where to serve")->type_name("HOST:PORT");
  serve->add_flag("--json", flags.json, "Print an error as a JSON object, too");
  CLI::App* const call =
      app.add_subcommand("call", "Have a node's key signed, by a token on the standard input");
  call->add_option("directory", flags.directory, "The node's")->required()->type_name("DIR");
  call->add_option("--name", flags.name, "Name of the node")->required()->type_name("NAME");
  call->add_option("--at", flags.at, "Where the authority's holder serves")->type_name("HOST:PORT");
  call->add_option("--timeout", flags.timeout_s, "Seconds for all tries")
      ->transform(arguments::whole(1, 3600))
      ->type_name("S");
  const arguments::Ended ended = arguments::parse_main(app, argc, argv);
  if (ended.ended) return ended.status;
  return enrol::end(serve->parsed() ? enrol::run_server(flags) : enrol::run_client(flags), flags.json);
}
