// SPDX-License-Identifier: Apache-2.0
#include "control/identity/authority.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <ctime>
#include <mutex>

#include "control/identity/node_files.h"
#include "dataplane/base/config/config.h"
#include "dataplane/base/text.h"
#include "dataplane/base/utc.h"

namespace sluice::identity {
namespace {

constexpr int kAuthLevel = 2;  // of OpenSSL: 112 bits, no SHA-1
constexpr int kDepthMax = 6;   // certificates between a peer's and the authority's
constexpr size_t kListsMax = 16;

// Empty: it is one.
std::string why_no_ca(X509* certificate) {
  if (X509_get_extension_flags(certificate) & EXFLAG_INVALID) return "its extensions cannot be read";
  if ((X509_get_extension_flags(certificate) & EXFLAG_BCONS) == 0)
    return "it is no CA: it has no basicConstraints";
  if (X509_check_ca(certificate) != 1)
    return "it is no CA: it may not sign certificates (basicConstraints, keyUsage)";
  return "";
}

// The remedy if OpenSSL refused a certificate for one of its dates (X509_V_ERR_*). Empty for any other
// reason.
std::string clock_remedy(int reason) {
  const std::string now = base::utc_text(int64_t{std::time(nullptr)} * 1'000'000'000);
  switch (reason) {
    case X509_V_ERR_CERT_NOT_YET_VALID:
    case X509_V_ERR_CRL_NOT_YET_VALID:
      return "; the clock of this host, which says " + now +
             ", is behind, or that of the authority is ahead: set it";
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CRL_HAS_EXPIRED:
      return "; a new one is needed, unless the clock of this host, which says " + now + ", is ahead";
    default:
      return "";
  }
}

// The last one that was made, and of what: each handshake asks for it.
struct Made {
  std::mutex mutex;
  std::string of;
  std::shared_ptr<const Authority> authority;
};

}  // namespace

std::string name_of(const Expiry& expiry) {
  if (expiry.kind == "own") return "the certificate of this node";
  if (expiry.kind == "peer") return "the certificate of peer " + base::printable(expiry.name);
  if (expiry.kind == "ca") return "the certificate of the authority " + base::printable(expiry.name);
  return "the list of what the authority has revoked, " + base::printable(expiry.name) + ",";
}

Result<std::shared_ptr<const Authority>> Authority::load(const std::filesystem::path& ca_file,
                                                         const std::filesystem::path& crl_file,
                                                         const std::string& domain) {
  const Result<std::string> text = read_guarded_file(ca_file);
  if (!text) return text.error();
  Result<std::string> list = std::string();
  if (!crl_file.empty()) list = read_guarded_file(crl_file);
  if (!list) return list.error();
  static Made made;
  const std::scoped_lock lock(made.mutex);
  const std::string of = ca_file.string() + '\0' + crl_file.string() + '\0' + domain + '\0' + *text + *list;
  if (made.authority && made.of == of) return made.authority;
  const std::shared_ptr<Authority> authority(new Authority);
  authority->domain_ = domain;
  authority->store_.reset(X509_STORE_new());
  if (!authority->store_) return Error{ErrorCode::kInternal, "no memory for an authority"};
  if (Status status = authority->take(*text, ca_file); !status) return status.error();
  if (!crl_file.empty()) {
    if (Status status = authority->take_list(*list, crl_file); !status) return status.error();
  }
  made.of = of;
  made.authority = authority;
  return made.authority;
}

Status Authority::take(const std::string& text, const std::filesystem::path& file) {
  if (text.find_first_not_of(" \t\r\n") == std::string::npos)
    return configuration(file.string() + ": is empty; put the certificate of the authority there, in PEM");
  const auto all = parse_certificates(text, kCertificatesMax);
  if (!all)
    return configuration(file.string() + ": " + all.error().message +
                         "; only the certificate of the authority belongs here, and while it is replaced its "
                         "successor's");
  for (const CertificatePointer& one : *all) {
    const std::string subject = subject_of(one.get());
    if (const std::string why = why_no_ca(one.get()); !why.empty())
      return configuration(file.string() + ": " + subject + ": " + why +
                           "; name the authority's own certificate");
    if (X509_STORE_add_cert(store_.get(), one.get()) != 1)
      return configuration(file.string() + ": " + subject + ": " + openssl_reason());
    expiries_.push_back({.kind = "ca", .name = subject, .unix_s = expires_unix_s(one.get())});
  }
  return {};
}

Status Authority::take_list(const std::string& text, const std::filesystem::path& file) {
  const BioPointer in(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
  size_t count = 0;
  for (; in && count <= kListsMax; ++count) {
    const std::unique_ptr<X509_CRL, OpensslDeleter> one(
        PEM_read_bio_X509_CRL(in.get(), nullptr, nullptr, nullptr));
    if (!one) break;
    if (X509_STORE_add_crl(store_.get(), one.get()) != 1)
      return configuration(file.string() + ": " + openssl_reason());
    const int64_t next = unix_s_of(X509_CRL_get0_nextUpdate(one.get()));
    expiries_.push_back({.kind = "crl", .name = file.filename().string(), .unix_s = next});
  }
  const unsigned long last = ERR_peek_last_error();
  const bool ended = last == 0 || ERR_GET_REASON(last) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (!ended || count == 0 || count > kListsMax)
    return configuration(file.string() +
                         ": holds no list of revoked certificates (CRL, PEM), a damaged one, "
                         "or more than 16; take it from the authority again");
  flags_ = X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL;
  return {};
}

Result<std::string> Authority::judge(const Shown& shown) const {
  const std::unique_ptr<X509_STORE_CTX, OpensslDeleter> context(X509_STORE_CTX_new());
  if (!context || X509_STORE_CTX_init(context.get(), store_.get(), shown.certificate, shown.others) != 1)
    return Error{ErrorCode::kResources, "no memory to judge a certificate"};
  X509_VERIFY_PARAM* const how = X509_STORE_CTX_get0_param(context.get());
  X509_VERIFY_PARAM_set_flags(how, flags_ | (shown.dates ? 0UL : X509_V_FLAG_NO_CHECK_TIME));
  X509_VERIFY_PARAM_set_auth_level(how, kAuthLevel);
  X509_VERIFY_PARAM_set_depth(how, kDepthMax);
  if (shown.purpose != 0) X509_STORE_CTX_set_purpose(context.get(), shown.purpose);
  const bool good = X509_verify_cert(context.get()) == 1;
  ERR_clear_error();
  if (!good) {
    const int depth = X509_STORE_CTX_get_error_depth(context.get());
    const int reason = X509_STORE_CTX_get_error(context.get());
    return untrusted(std::string("its certificate is not good by [control] ca_file: ") +
                     X509_verify_cert_error_string(reason) +
                     (depth > 0 ? " (certificate " + std::to_string(depth) + " above it)" : "") +
                     clock_remedy(reason));
  }
  return name_in(shown.certificate);
}

Result<std::string> Authority::name_in(X509* certificate) const {
  const std::string wanted = domain_.empty() ? "LABEL" : "LABEL." + domain_;
  std::string found;
  for (const std::string& name : dns_names(certificate)) {
    std::string label = name;
    if (!domain_.empty()) {
      if (!name.ends_with("." + domain_)) continue;
      label.resize(name.size() - domain_.size() - 1);
    }
    if (!config::valid_node_name(label) || label == found) continue;
    if (!found.empty())
      return untrusted("its certificate names two peers, " + found + " and " + label +
                       ": it must have one DNS name of the form " + wanted);
    found = label;
  }
  if (!found.empty()) return found;
  return untrusted("its certificate names no peer: it must have a DNS name (subjectAltName) of the form " +
                   wanted + "; [control] ca_domain says which");
}

}  // namespace sluice::identity
