// sluice: the operator's command. See app.h.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <grpc/support/log.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "control/client/client.h"
#include "control/client/way.h"
#include "dataplane/base/own_files.h"
#include "tools/cli/app.h"
#include "tools/cli/terminal.h"

namespace {

size_t terminal_columns() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col < 20) return 80;
  return size.ws_col;
}

// A pipe whose other end is closed; a full disk is none.
bool reader_left() {
  pollfd out{.fd = STDOUT_FILENO, .events = POLLOUT, .revents = 0};
  return ::poll(&out, 1, 0) == 1 && (out.revents & (POLLERR | POLLHUP)) != 0;
}

// As it is built, or as the bundle or the package has it; empty: it is not there.
std::filesystem::path find_program(const std::string& name) {
  for (const std::filesystem::path& directory :
       {sluice::base::programs_beside(sluice::base::own_executable()), std::filesystem::path("/usr/sbin"),
        std::filesystem::path("/usr/libexec/sluice")}) {
    if (::access((directory / name).c_str(), X_OK) == 0) return directory / name;
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  // Whatever is opened next would stand in the place of what is closed, and be written to.
  while (::fcntl(STDERR_FILENO, F_GETFD) < 0 || ::fcntl(STDOUT_FILENO, F_GETFD) < 0 ||
         ::fcntl(STDIN_FILENO, F_GETFD) < 0) {
    if (::open("/dev/null", O_RDONLY) < 0) return 1;
  }
  // A reader that leaves is noticed where we write.
  std::signal(SIGPIPE, SIG_IGN);
  // gRPC's own words are of no use to an operator: its errors reach us as statuses.
  gpr_set_log_function([](gpr_log_func_args*) {});
  sluice::cli::Environment environment{std::cout, std::cerr};
  environment.reader_left = reader_left;
  const bool escapes = sluice::cli::knows_escapes(std::getenv("TERM"));
  environment.err_is_terminal = ::isatty(STDERR_FILENO) == 1 && escapes;
  environment.out_is_terminal = ::isatty(STDOUT_FILENO) == 1 && escapes;
  environment.err_columns = terminal_columns;
  if (::isatty(STDIN_FILENO) == 1) {
    environment.answer = [] {
      std::string line;
      std::getline(std::cin, line);
      return line;
    };
  }
  std::error_code error;
  environment.working_directory = std::filesystem::current_path(error);
  environment.default_node = sluice::api::usual_node();
  environment.file_opener = find_program("sluice-users");
  environment.console = find_program("sluice-console");
  environment.enroller = find_program("sluice-enrol");
  environment.control = find_program("sluice-control");
  environment.dataplane = find_program("sluice-dataplane");
  sluice::api::Client::keep_channels();
  // All output is flushed; nothing else is left to do.
  ::_exit(sluice::cli::run(std::vector<std::string>(argv + 1, argv + argc), environment));
}
