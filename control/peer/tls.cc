// SPDX-License-Identifier: Apache-2.0
#include "control/peer/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <asio/ssl/error.hpp>
#include <mutex>
#include <string>

#include "control/identity/certificate.h"
#include "control/identity/node_files.h"

namespace sluice::peer {
namespace {

constexpr size_t kChainMax = 8;  // certificates between ours and its authority's, and ours

int check_index() {
  static const int index = SSL_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

// Stands in for OpenSSL's whole chain verification. That the other side holds the key is proved by its
// CertificateVerify, which OpenSSL checks in any case.
int check_certificate(X509_STORE_CTX* store, void* /*unused*/) {
  auto* ssl = static_cast<SSL*>(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
  auto* check = static_cast<PeerCheck*>(SSL_get_ex_data(ssl, check_index()));
  X509* certificate = X509_STORE_CTX_get0_cert(store);
  if (check != nullptr && check->cannot_judge) {
    X509_STORE_CTX_set_error(store, X509_V_ERR_OUT_OF_MEM);  // sent as the alert internal_error
    return 0;
  }
  if (check != nullptr && check->accept && certificate != nullptr) {
    const auto fingerprint = identity::fingerprint_of(certificate);
    if (fingerprint) {
      check->fingerprint = *fingerprint;
      const identity::Shown shown{
          .certificate = certificate,
          .others = X509_STORE_CTX_get0_untrusted(store),
          .purpose = SSL_is_server(ssl) == 1 ? X509_PURPOSE_SSL_CLIENT : X509_PURPOSE_SSL_SERVER};
      const Status accepted = check->accept(shown);
      if (accepted) return 1;
      check->refusal = accepted.error().message;
    }
  }
  X509_STORE_CTX_set_error(store, X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT);  // sent as the alert unknown_ca
  return 0;
}

}  // namespace

namespace {

using ContextPtr = std::shared_ptr<asio::ssl::context>;

Result<ContextPtr> new_tls_context(const identity::Identity& self, const std::string& key_text) {
  const auto certificate = identity::parse_certificate(self.certificate_pem);
  if (!certificate)
    return Error{certificate.error().code,
                 self.certificate_file.string() + ": " + certificate.error().message};
  const auto chain = identity::parse_certificates(self.certificate_pem, kChainMax);
  if (!chain) return Error{chain.error().code, self.certificate_file.string() + ": " + chain.error().message};
  const auto key = identity::parse_key(key_text);
  if (!key) return Error{key.error().code, self.key_file.string() + ": " + key.error().message};

  SSL_CTX* raw = SSL_CTX_new(TLS_method());
  if (raw == nullptr) return Error{ErrorCode::kInternal, "cannot set up TLS: " + identity::openssl_reason()};
  auto context = std::make_shared<asio::ssl::context>(raw);  // owns it from here
  SSL_CTX_set_verify(raw, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_cert_verify_callback(raw, check_certificate, nullptr);
  SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(raw, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION);
  if (SSL_CTX_set_min_proto_version(raw, TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_max_proto_version(raw, TLS1_3_VERSION) != 1 || SSL_CTX_set_num_tickets(raw, 0) != 1 ||
      SSL_CTX_use_certificate(raw, certificate->get()) != 1 || SSL_CTX_use_PrivateKey(raw, key->get()) != 1 ||
      SSL_CTX_check_private_key(raw) != 1)
    return Error{ErrorCode::kConfiguration, self.key_file.string() +
                                                ": cannot be used for TLS: " + identity::openssl_reason() +
                                                "; restore key.pem and cert.pem together"};
  for (size_t i = 1; i < chain->size(); ++i) SSL_CTX_add1_chain_cert(raw, (*chain)[i].get());
  if (const auto next = identity::parse_certificate(self.next_certificate_pem); next)
    SSL_CTX_add1_chain_cert(raw, next->get());
  return context;
}

// The last one that was made, and of what.
struct Made {
  std::mutex mutex;
  std::string shown_pem;
  std::string key_text;
  ContextPtr context;
};

}  // namespace

// To make one takes 2 ms, and each call would: who shows the same certificate and key as last time gets the
// same.
Result<ContextPtr> make_tls_context(const identity::Identity& self) {
  static Made made;
  const auto key_text = identity::read_small_file(self.key_file);
  if (!key_text) return key_text.error();
  const std::scoped_lock lock(made.mutex);
  const std::string shown_pem = self.certificate_pem + self.next_certificate_pem;
  if (made.context && made.shown_pem == shown_pem && made.key_text == *key_text) return made.context;
  Result<ContextPtr> context = new_tls_context(self, *key_text);
  if (!context) return context;
  made.shown_pem = shown_pem;
  made.key_text = *key_text;
  made.context = *context;
  return context;
}

void set_peer_check(SSL* ssl, PeerCheck* check) { SSL_set_ex_data(ssl, check_index(), check); }

bool refused_by_peer(const asio::error_code& failure) {
  if (failure.category() != asio::error::get_ssl_category()) return false;
  switch (ERR_GET_REASON(static_cast<unsigned long>(failure.value()))) {
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
      return true;
    default:
      return false;
  }
}

bool not_judged_by_peer(const asio::error_code& failure) {
  return failure.category() == asio::error::get_ssl_category() &&
         ERR_GET_REASON(static_cast<unsigned long>(failure.value())) == SSL_R_TLSV1_ALERT_INTERNAL_ERROR;
}

}  // namespace sluice::peer
