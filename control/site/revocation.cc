// What the authority takes back, and the list of it that nodes read.
//
// A node that has renewed its certificate has several that count. Each of them is in the token that it was
// signed with (tokens/ID/uses), and the last one in issued/ as well, perhaps there alone after a crash.
// SPDX-License-Identifier: Apache-2.0
#include <ctime>
#include <map>

#include "control/identity/node_files.h"
#include "control/site/issue.h"
#include "control/site/parts.h"
#include "control/site/site.h"
#include "dataplane/base/config/config.h"
#include "dataplane/base/text.h"

namespace sluice::site {

namespace fs = std::filesystem;

namespace {

constexpr size_t kListBytesMax = 64U << 10;  // as node_files.h reads it; some 1700 certificates

std::string serial_of(X509* certificate) {
  uint64_t serial = 0;
  (void)ASN1_INTEGER_get_uint64(&serial, X509_get0_serialNumber(certificate));
  return std::to_string(serial);
}

}  // namespace

Status Site::revoke_node(const std::string& name) {
  if (!config::valid_node_name(name))
    return Error{ErrorCode::kUsage, "'" + base::printable(name) + "' is no node name"};
  return revoke([&name](X509* certificate) { return identity::common_name(certificate) == name; },
                "no node " + name + " has a certificate of this authority");
}

Status Site::revoke_key(const std::string& fingerprint) {
  return revoke(
      [&fingerprint](X509* certificate) {
        const auto its = identity::fingerprint_of(certificate);
        return its && *its == fingerprint;
      },
      "no node with the key " + base::printable(fingerprint) + " has a certificate of this authority");
}

Status Site::revoke(const std::function<bool(X509*)>& chosen, const std::string& none) {
  const auto alone = names_lock();
  if (!alone) return alone.error();
  const auto issued = certificates_in(directory_ / "issued");
  if (!issued) return issued.error();
  std::vector<fs::path> files = *issued;
  std::error_code failure;
  for (const auto& token : fs::directory_iterator(directory_ / "tokens", failure)) {
    const auto uses = certificates_in(token.path() / "uses");
    if (!uses) return uses.error();
    files.insert(files.end(), uses->begin(), uses->end());
  }
  if (failure) return cannot(directory_ / "tokens", failure.value());

  std::map<std::string, identity::CertificatePointer> found;  // by the name of its file in revoked/
  std::vector<fs::path> given_up;                             // in issued/
  for (size_t i = 0; i < files.size(); ++i) {
    identity::CertificatePointer one = read_certificate(files[i]);
    if (!one || !chosen(one.get())) continue;
    if (i < issued->size()) given_up.push_back(files[i]);
    const std::string name = identity::common_name(one.get()) + "." + serial_of(one.get()) + ".pem";
    found.insert_or_assign(name, std::move(one));
  }
  if (found.empty()) return Error{ErrorCode::kUsage, none};
  for (const auto& [name, certificate] : found) {
    const auto pem = identity::to_pem(certificate.get());
    if (!pem) return pem.error();
    if (Status status =
            identity::write_small_file(directory_ / "revoked" / name, *pem, 0600, identity::Replace::kYes);
        !status)
      return status;
  }
  if (Status status = write_list(); !status) return status;
  for (const fs::path& file : given_up)
    if (const auto gone = identity::remove_small_file(file); !gone) return gone.error();
  for (const auto& [name, certificate] : found) {
    const auto fingerprint = identity::fingerprint_of(certificate.get());
    if (!fingerprint) return fingerprint.error();
    if (Status status = audit("node_revoked", {{"name", identity::common_name(certificate.get())},
                                               {"fingerprint", *fingerprint},
                                               {"serial", serial_of(certificate.get())}});
        !status)
      return status;
  }
  return {};
}

// What was revoked once stays on it until it has ended by itself.
Status Site::write_list() const {
  const auto files = certificates_in(directory_ / "revoked");
  if (!files) return files.error();
  std::vector<identity::CertificatePointer> revoked;
  for (const fs::path& file : *files) {
    identity::CertificatePointer one = read_certificate(file);
    if (one && identity::expires_unix_s(one.get()) > std::time(nullptr)) revoked.push_back(std::move(one));
  }
  const auto list = make_list({.certificate = chain_.front().get(), .key = key_.get()}, revoked);
  if (!list) return list.error();
  if (list->size() > kListBytesMax)
    return identity::configuration(
        "the list of revoked certificates would be longer than nodes read (64 KiB); give nodes certificates "
        "of a shorter life, or make another authority");
  return identity::write_small_file(directory_ / "crl.pem", *list, 0644, identity::Replace::kYes);
}

}  // namespace sluice::site
