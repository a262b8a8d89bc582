// SPDX-License-Identifier: Apache-2.0
#include "control/peer/accepting.h"

#include "dataplane/base/config/config.h"
#include "dataplane/base/log.h"

namespace sluice::peer {

using asio::ip::tcp;

Status listen_at(asio::io_context& io, tcp::acceptor& acceptor, const std::string& address,
                 std::string_view remedy) {
  const auto where = config::parse_host_port(address);
  if (!where) return where.error();
  asio::error_code failure;
  tcp::resolver resolver(io);
  const auto found = resolver.resolve(where->host, std::to_string(where->port),
                                      tcp::resolver::passive | tcp::resolver::numeric_service, failure);
  if (!failure && !found.empty()) {
    const tcp::endpoint endpoint = found.begin()->endpoint();
    acceptor.open(endpoint.protocol(), failure);
    if (!failure) acceptor.set_option(tcp::acceptor::reuse_address(true), failure);
    if (!failure) acceptor.bind(endpoint, failure);
    if (!failure) acceptor.listen(asio::socket_base::max_listen_connections, failure);
  }
  if (!failure) return {};
  return Error{ErrorCode::kConfiguration,
               "cannot listen on " + address + ": " + failure.message() + "; " + std::string(remedy)};
}

std::string address_group(const asio::ip::address& address) {
  if (!address.is_v6() || address.to_v6().is_v4_mapped())
    return address.is_v4() ? address.to_string()
                           : asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).to_string();
  const auto bytes = address.to_v6().to_bytes();
  return {bytes.begin(), bytes.begin() + 8};
}

uint64_t steady_ns() {
  return static_cast<uint64_t>(
      std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
}

bool LineBudget::allow() {
  constexpr unsigned kLinesMax = 20;
  constexpr std::chrono::seconds kSpan{10};
  const auto now = std::chrono::steady_clock::now();
  if (now - since_ >= kSpan) {
    if (dropped_ > 0) log::of(log::kPeer)->warn("{} further {} were not logged", dropped_, of_);
    since_ = now;
    used_ = 0;
    dropped_ = 0;
  }
  if (used_ < kLinesMax) return ++used_ > 0;
  ++dropped_;
  return false;
}

}  // namespace sluice::peer
