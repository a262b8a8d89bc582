// The listener of a node (listener.h) and that of an authority (control/enrol) let strangers call. Both take
// from here how to listen at an address, which addresses count as one caller, and how many lines of log
// callers may cause.
//
// Cold. The thread of the io_context.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "dataplane/base/error.h"

namespace sluice::peer {

// kConfiguration: nobody can listen at this address, why, and `remedy`.
Status listen_at(asio::io_context& io, asio::ip::tcp::acceptor& acceptor, const std::string& address,
                 std::string_view remedy);

// Those who share an address. An IPv6 host has a whole /64 to call from.
std::string address_group(const asio::ip::address& address);

uint64_t steady_ns();

// Strangers choose how often they call: without a bound they would fill the log.
class LineBudget {
 public:
  // of: what the lines are about, for the line that says how many were left out.
  explicit LineBudget(std::string_view of) : of_(of) {}
  bool allow();

 private:
  const std::string_view of_;
  std::chrono::steady_clock::time_point since_{};
  unsigned used_ = 0;
  unsigned dropped_ = 0;
};

}  // namespace sluice::peer
