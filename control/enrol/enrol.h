// The two ends of an enrolment: the holder of an authority serves it, a newcomer calls.
//
// TLS 1.3, where both show a key: the holder the authority's own, by which the newcomer knows it; the
// newcomer the one that is to be signed, which it proves to have by that. Then one frame each (docs/WIRE.md,
// "Enrolment"). Runs on the io_context's one thread; writing files blocks it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <asio/io_context.hpp>
#include <filesystem>
#include <memory>
#include <string>

#include "control/site/site.h"
#include "control/site/token.h"

namespace sluice::enrol {

struct Counts {
  uint64_t enrolled = 0;
  uint64_t refused = 0;  // by their tokens
  uint64_t failed = 0;   // no handshake, or no request
  uint64_t timed_out = 0;
  uint64_t let_go = 0;  // there were too many
};

class Server {
 public:
  virtual ~Server() = default;
  virtual uint16_t port() const = 0;
  virtual const Counts& counts() const = 0;
};
// From now on, until it is destroyed. `site` has to live as long.
Result<std::unique_ptr<Server>> serve(asio::io_context& io, site::Site& site, const std::string& address);

struct Newcomer {
  std::filesystem::path directory;  // of the node, which has a key
  std::string name;
  std::string address;      // "host:port"
  uint32_t timeout_ms = 0;  // for all tries
};
// Has the node's certificate signed, and puts it into its place, with the authority's beside it
// (authority/ca.pem, authority/crl.pem). kPeerUntrusted: somebody else is there, or the token does not count.
asio::awaitable<Result<site::Enrolled>> call(site::Token token, Newcomer newcomer);

}  // namespace sluice::enrol
