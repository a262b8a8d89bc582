// hipster: sends or receives one file by HIPSTER's protocol.
// SPDX-License-Identifier: Apache-2.0
#include "perf/hipster/hipster.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "dataplane/base/arguments/arguments.h"

namespace sluice::hipster {

void fail(const std::string& what) {
  fmt::print(stderr, "hipster: {}: {}\n", what, std::strerror(errno));
  std::exit(1);
}

int make_socket() {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) fail("socket");
  for (const int option : {SO_RCVBUFFORCE, SO_SNDBUFFORCE}) {
    if (setsockopt(fd, SOL_SOCKET, option, &kSocketBufferBytes, sizeof kSocketBufferBytes) != 0)
      fail("buffers");
  }
  return fd;
}

}  // namespace sluice::hipster

int main(int count, char** words) {
  using namespace sluice::hipster;
  CLI::App app{"HIPSTER's file transfer, for comparisons", "hipster"};
  Options options;
  app.require_subcommand(1);
  CLI::App* send = app.add_subcommand("send", "Sends a file");
  CLI::App* receive = app.add_subcommand("receive", "Receives a file, and answers until SIGTERM");
  for (CLI::App* each : {send, receive}) {
    each->add_option("file", options.file, "The file")->required();
    each->add_option("--address", options.address, "Of the receiver, IPv4")->required();
    each->add_option("--port", options.port, "Of the receiver");
  }
  send->add_option("--window", options.window, "Packets that may be on their way before the sender waits");
  send->add_option("--block-us", options.block_us, "Longest time between two packets while it waits");
  receive->add_option("--size-bytes", options.size_bytes, "Size of the file")->required();
  if (const auto parsed = sluice::arguments::parse_main(app, count, words); parsed.ended)
    return parsed.status;
  return send->parsed() ? send_file(options) : receive_file(options);
}
