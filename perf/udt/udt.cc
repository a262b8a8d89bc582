// udt: sends from memory, or receives and discards, by UDT (libudt), as fast as UDT's own rate control goes.
//
// A peer for the lab's `socket`. The receiver takes one connection and prints, as JSON, the bytes that came
// and the time from the first of them to the last.
// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <udt/udt.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "dataplane/base/arguments/arguments.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kBlockBytes = 1 << 20;
constexpr int kBufferBytes = 64 << 20;  // more than a veth ever has on its way

struct Options {
  std::string address;
  uint16_t port = 9000;
  int mtu = 1500;  // of the wire
  double seconds = 4;
};

[[noreturn]] void fail(const std::string& what) {
  fmt::print(stderr, "udt: {}: {}\n", what, UDT::getlasterror().getErrorMessage());
  std::exit(1);
}

UDTSOCKET make_socket(const Options& options) {
  const UDTSOCKET socket = UDT::socket(AF_INET, SOCK_STREAM, 0);
  const auto set = [&](UDT::SOCKOPT option, int value) {
    if (UDT::setsockopt(socket, 0, option, &value, sizeof value) == UDT::ERROR) fail("option");
  };
  set(UDT_MSS, options.mtu);
  set(UDT_FC, kBufferBytes / options.mtu);
  const linger none{};
  if (UDT::setsockopt(socket, 0, UDT_LINGER, &none, sizeof none) == UDT::ERROR) fail("option");
  for (const UDT::SOCKOPT each : {UDT_SNDBUF, UDT_RCVBUF, UDP_SNDBUF, UDP_RCVBUF}) set(each, kBufferBytes);
  return socket;
}

sockaddr_in address_of(const Options& options) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(options.port);
  if (inet_pton(AF_INET, options.address.c_str(), &out.sin_addr) != 1) {
    fmt::print(stderr, "udt: {}: no IPv4 address\n", options.address);
    std::exit(2);
  }
  return out;
}

double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

int send(const Options& options) {
  const UDTSOCKET socket = make_socket(options);
  const sockaddr_in there = address_of(options);
  if (UDT::connect(socket, reinterpret_cast<const sockaddr*>(&there), sizeof there) == UDT::ERROR)
    fail("connect");
  const std::vector<char> block(kBlockBytes, 'u');
  for (const Clock::time_point begin = Clock::now(); since(begin) < options.seconds;) {
    if (UDT::send(socket, block.data(), kBlockBytes, 0) == UDT::ERROR) fail("send");
  }
  UDT::close(socket);  // what is under way is dropped, without UDT_LINGER: the receiver knows what came
  return 0;
}

int receive(const Options& options) {
  const UDTSOCKET listener = make_socket(options);
  const sockaddr_in here = address_of(options);
  if (UDT::bind(listener, reinterpret_cast<const sockaddr*>(&here), sizeof here) == UDT::ERROR) fail("bind");
  if (UDT::listen(listener, 1) == UDT::ERROR) fail("listen");
  sockaddr_in from{};
  int from_bytes = sizeof from;
  const UDTSOCKET socket = UDT::accept(listener, reinterpret_cast<sockaddr*>(&from), &from_bytes);
  if (socket == UDT::INVALID_SOCK) fail("accept");
  std::vector<char> block(kBlockBytes);
  uint64_t bytes = 0;
  double seconds = 0;
  for (Clock::time_point begin;;) {
    const int count = UDT::recv(socket, block.data(), kBlockBytes, 0);
    if (count == UDT::ERROR) break;  // the sender has gone
    if (bytes == 0) begin = Clock::now();
    bytes += static_cast<uint64_t>(count);
    seconds = since(begin);
  }
  fmt::print("{{\"bytes\":{},\"seconds\":{}}}\n", bytes, seconds);
  if (seconds > 0) return 0;
  fmt::print(stderr, "udt: nothing came\n");
  return 1;
}

}  // namespace

int main(int count, char** words) {
  CLI::App app{"UDT from memory to nowhere, for comparisons", "udt"};
  Options options;
  app.require_subcommand(1);
  CLI::App* const sender = app.add_subcommand("send", "Sends for so many seconds");
  CLI::App* const receiver = app.add_subcommand("receive", "Takes one connection, and prints what came");
  for (CLI::App* each : {sender, receiver}) {
    each->add_option("--address", options.address, "Of the receiver, IPv4")->required();
    each->add_option("--port", options.port, "Of the receiver");
    each->add_option("--mtu", options.mtu, "Of the wire, bytes");
  }
  sender->add_option("--seconds", options.seconds, "How long");
  if (const auto parsed = sluice::arguments::parse_main(app, count, words); parsed.ended)
    return parsed.status;
  UDT::startup();
  const int status = sender->parsed() ? send(options) : receive(options);
  UDT::cleanup();
  return status;
}
