// SPDX-License-Identifier: Apache-2.0
#include <asio/ip/tcp.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/this_coro.hpp>
#include <asio/use_awaitable.hpp>
#include <ctime>

#include "control/enrol/enrol.h"
#include "control/identity/authority.h"
#include "control/identity/hex.h"
#include "control/identity/node_files.h"
#include "control/identity/rotation.h"
#include "control/peer/framing.h"
#include "control/peer/stream.h"
#include "control/site/words.h"
#include "dataplane/base/config/config.h"
#include "dataplane/base/text.h"

namespace sluice::enrol {
namespace {

using asio::ip::tcp;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr uint32_t kTryMs = 30'000;
constexpr auto kPauseMost = 5s;  // between two tries

struct StackDeleter {
  void operator()(STACK_OF(X509) * p) const { sk_X509_free(p); }
};

Error unreachable(const std::string& address, const std::string& why) {
  return {ErrorCode::kPeerUnreachable, "cannot reach the holder of the authority at " + address + ": " + why +
                                           "; start 'sluice authority serve' there, or name it with --at"};
}

asio::awaitable<Result<tcp::socket>> open_socket(std::string address, uint32_t timeout_ms) {
  const auto where = config::parse_host_port(address);
  if (!where) co_return where.error();
  const auto executor = co_await asio::this_coro::executor;
  const auto resolver = std::make_shared<tcp::resolver>(executor);
  const auto socket = std::make_shared<tcp::socket>(executor);
  const peer::Deadline deadline(executor, timeout_ms, [resolver, socket] {
    resolver->cancel();
    asio::error_code ignored;
    socket->close(ignored);
  });
  asio::error_code failure;
  const auto found = co_await resolver->async_resolve(where->host, std::to_string(where->port),
                                                      asio::redirect_error(asio::use_awaitable, failure));
  if (failure) co_return unreachable(address, "its name cannot be resolved: " + failure.message());
  for (const auto& each : found) {
    if (deadline.expired()) break;
    socket->close(failure);
    co_await socket->async_connect(each.endpoint(), asio::redirect_error(asio::use_awaitable, failure));
    if (!failure && !deadline.expired()) co_return std::move(*socket);
  }
  co_return unreachable(address, deadline.expired() ? "no answer within " + std::to_string(timeout_ms) + " ms"
                                                    : failure.message());
}

Status judge(const site::Token& token, const std::string& address, const std::string& fingerprint) {
  if (fingerprint == token.authority) return {};
  return Error{ErrorCode::kPeerUntrusted,
               "whoever answers at " + address +
                   " does not hold the authority of this token: it shows the key " + fingerprint +
                   ", and the token names " + token.authority +
                   "; nothing was sent. Check the address and the token with the authority's holder"};
}

// One try: over TLS, to nobody but who has the authority's key.
asio::awaitable<Result<site::Enrolled>> ask(site::Token token, Newcomer newcomer, uint32_t timeout_ms) {
  const auto self = identity::load(newcomer.directory);
  if (!self) co_return self.error();
  const auto context = peer::make_tls_context(*self);
  if (!context) co_return context.error();
  auto socket = co_await open_socket(newcomer.address, timeout_ms);
  if (!socket) co_return socket.error();
  const auto stream =
      std::make_shared<peer::Stream>(std::move(*socket), *context, std::make_shared<peer::FrameMemory>());
  stream->set_peer("the authority's holder");
  stream->set_frame_bytes_max(site::kReplyBytesMax);
  stream->check.accept = [&](const identity::Shown& shown) -> Status {
    const auto fingerprint = identity::fingerprint_of(shown.certificate);
    return fingerprint ? judge(token, newcomer.address, *fingerprint) : Status(fingerprint.error());
  };
  const peer::Deadline deadline(stream->executor(), timeout_ms, [stream] { stream->abort(); });
  asio::error_code failure = co_await stream->handshake(asio::ssl::stream_base::client);
  stream->check.accept = nullptr;
  if (!stream->check.refusal.empty()) co_return Error{ErrorCode::kPeerUntrusted, stream->check.refusal};
  std::array<uint8_t, site::kBindingBytes> binding{};
  if (deadline.expired())
    co_return unreachable(newcomer.address, "no answer within " + std::to_string(timeout_ms) + " ms");
  if (failure || !stream->export_secret(site::kBindingLabel, {}, binding))
    co_return unreachable(newcomer.address, "the TLS handshake failed: " + failure.message());
  const site::Wish wish{
      .token = site::token_id(*site::public_key_of(token)),
      .name = newcomer.name,
      .fingerprint = self->fingerprint,
      .binding = identity::to_hex({reinterpret_cast<const char*>(binding.data()), binding.size()})};
  const auto signature = site::sign_wish(token, wish);
  if (!signature) co_return signature.error();
  const site::Request request{.token = wish.token, .name = wish.name, .signature = *signature};
  if (Status sent = stream->send_frame(peer::encode_frame(site::encode(request))); !sent)
    co_return sent.error();
  const auto frame = co_await stream->read_frame(&failure);
  stream->close();
  if (deadline.expired())
    co_return unreachable(newcomer.address, "no answer within " + std::to_string(timeout_ms) + " ms");
  if (!frame) co_return unreachable(newcomer.address, frame.error().message);
  co_return site::decode_reply(*frame);
}

// Whether what came is a certificate of that authority, for this key and this name.
Status check(const site::Enrolled& enrolled, const Newcomer& newcomer, const fs::path& ca_file,
             const fs::path& crl_file) {
  const auto authority = identity::Authority::load(ca_file, crl_file, enrolled.domain);
  if (!authority) return authority.error();
  const auto chain = identity::parse_certificates(enrolled.certificate_pem, 8);
  if (!chain) return chain.error();
  const std::unique_ptr<STACK_OF(X509), StackDeleter> others(sk_X509_new_null());
  for (size_t i = 1; others && i < chain->size(); ++i) sk_X509_push(others.get(), (*chain)[i].get());
  const auto name = (*authority)->judge({.certificate = chain->front().get(), .others = others.get()});
  if (!name) return name.error();
  if (*name == newcomer.name) return {};
  return Error{ErrorCode::kPeerUntrusted, "the authority has named this node " + base::printable(*name) +
                                              ", which asked for " + newcomer.name};
}

Status install(const site::Enrolled& enrolled, const Newcomer& newcomer) {
  const fs::path directory = newcomer.directory / "authority";
  const fs::path ca_file = directory / "ca.pem";
  const fs::path crl_file = enrolled.crl_pem.empty() ? fs::path() : directory / "crl.pem";
  if (Status status = identity::make_directory(directory, 0755); !status) return status;
  if (Status status = identity::write_small_file(ca_file, enrolled.ca_pem, 0644, identity::Replace::kYes);
      !status)
    return status;
  if (!crl_file.empty()) {
    if (Status status = identity::write_small_file(crl_file, enrolled.crl_pem, 0644, identity::Replace::kYes);
        !status)
      return status;
  }
  if (Status status = check(enrolled, newcomer, ca_file, crl_file); !status) return status;
  const auto installed = identity::install(newcomer.directory, enrolled.certificate_pem, "");
  return installed ? Status() : Status(installed.error());
}

}  // namespace

asio::awaitable<Result<site::Enrolled>> call(site::Token token, Newcomer newcomer) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(newcomer.timeout_ms);
  const auto left_ms = [until] {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    return static_cast<uint32_t>(std::max<int64_t>(left.count(), 1));
  };
  asio::steady_timer pause(co_await asio::this_coro::executor);
  for (std::chrono::milliseconds wait = 500ms;;
       wait = std::min<std::chrono::milliseconds>(2 * wait, kPauseMost)) {
    const uint32_t timeout_ms = std::min(kTryMs, left_ms());
    const Result<site::Enrolled> enrolled = co_await ask(token, newcomer, timeout_ms);
    if (enrolled) {
      if (Status status = install(*enrolled, newcomer); !status) co_return status.error();
      co_return enrolled;
    }
    // With the same key the same may be asked for again: a lost answer costs no token.
    const bool again = enrolled.error().code == ErrorCode::kPeerUnreachable ||
                       enrolled.error().code == ErrorCode::kResources;
    if (!again || std::chrono::steady_clock::now() + wait >= until) co_return enrolled.error();
    asio::error_code ignored;
    pause.expires_after(wait);
    co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
}

}  // namespace sluice::enrol
